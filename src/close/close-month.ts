import type { KeyObject } from 'node:crypto';
import { closedTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select, selectOne } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { readSettings } from '../report/compile.ts';
import { rowsSource, sourceParameters } from '../report/from-clause.ts';
import {
  type AccountMonth,
  canonicalText,
  digestOf,
  finestPlan,
  type UnconfirmedDay,
  valuesOf,
} from './canonical-text.ts';
import { type Close, closesOf } from './closes.ts';
import { manifestOf } from './manifest.ts';
import { daysOfMonth } from './month.ts';

export interface Closed extends Close {
  /** The month was closed before, with the same rows, names and unconfirmed days: nothing is written. */
  readonly before: boolean;
}

export interface CloseOptions {
  /** The days that are unconfirmed now. */
  readonly unconfirmed: readonly UnconfirmedDay[];
  /** Rejected rows that are open now and may be of the month. */
  readonly openRejects: number;
  /** Of days. */
  readonly timezone: string;
  /** Signs the manifest. */
  readonly key?: KeyObject | undefined;
  /** Called when the rows are there and the row of the close is not. */
  readonly beforeLast?: () => void | Promise<void>;
}

/**
 * Keeps the finest rows of a month, and their names, as they are now. The row of the close is written last, when what was
 * stored has been read again and has the digest of what it was copied from: killed before, there is no close, and what is
 * left over counts for nothing. The caller makes sure that no load runs, and that the month is sound.
 * @returns undefined where names were loaded meanwhile: nothing is closed
 */
export async function closeMonth(
  store: Store,
  reader: Reader,
  catalog: Catalog,
  which: AccountMonth,
  { unconfirmed, openRejects, timezone, key, beforeLast }: CloseOptions,
): Promise<Closed | undefined> {
  const { account, month } = which;
  const revision = await digestOf(canonicalText(reader, catalog, which, unconfirmed));
  const closes = await closesOf(store, { account });
  const revisions = closes.map((close) => close.revision);
  await removeLeftOvers(store, catalog, which, revisions);
  const last = closes.find((close) => close.month === month);
  if (last?.revision === revision) return { ...last, before: true };
  const stored = canonicalText(reader, catalog, { ...which, revision }, unconfirmed);
  // The text of a revision names account and month, so no other month has it.
  if (!revisions.includes(revision)) {
    for (const family of Object.keys(catalog.families))
      await copyRows(store, catalog, family, which, revision);
  }
  if ((await digestOf(stored)) !== revision) return undefined;
  const close: Close = {
    account,
    month,
    revision,
    previous: last?.revision ?? '',
    closed_at: await timeAfter(store, last),
    rows: await countRows(store, catalog, account, revision),
    unconfirmed,
    open_rejects: openRejects,
  };
  const manifest = await manifestOf(reader, catalog, close, { timezone, routing: which.routing, key });
  await beforeLast?.();
  const { account: account_id, ...values } = close;
  await store.insert({
    table: 'closes',
    values: [{ account_id, ...values, manifest }],
    format: 'JSONEachRow',
  });
  return { ...close, before: false };
}

/** What closes that were interrupted have left of the month: rows of no revision that there is. */
async function removeLeftOvers(
  store: Store,
  catalog: Catalog,
  { account, month }: AccountMonth,
  revisions: readonly string[],
): Promise<void> {
  const { start, end } = daysOfMonth(month);
  const where =
    'WHERE account_id = {account:String} AND day BETWEEN {start:Date} AND {end:Date} AND revision NOT IN {revisions:Array(String)}';
  const query_params = { account, start, end, revisions };
  await onShards(store, async (shard) => {
    for (const table of Object.keys(catalog.families).map(closedTable)) {
      const left = await select(shard.store, `SELECT 1 FROM ${table} ${where} LIMIT 1`, query_params);
      if (left.length === 0) continue;
      await shard.store.command({
        query: `ALTER TABLE ${table} DELETE ${where}`,
        query_params,
        clickhouse_settings: { mutations_sync: '2' },
      });
    }
  });
}

async function copyRows(
  store: Store,
  catalog: Catalog,
  family: string,
  which: AccountMonth,
  revision: string,
): Promise<void> {
  const plan = finestPlan(catalog, family, which);
  const values = valuesOf(plan);
  const columns = ['account_id', 'revision', 'day', ...values.map(({ name }) => name)];
  await store.command({
    query: `INSERT INTO ${closedTable(family)} (${columns.join(', ')})
            SELECT {account:String}, {revision:String}, day, ${values.map(({ value }) => value).join(', ')}
            FROM ${rowsSource(plan)}`,
    query_params: { ...sourceParameters(plan), revision },
    clickhouse_settings: {
      ...readSettings(plan),
      // The same rows may have been stored and removed before.
      insert_deduplicate: 0,
      wait_end_of_query: 1,
    },
  });
}

async function countRows(store: Store, catalog: Catalog, account: string, revision: string): Promise<number> {
  const counts = Object.keys(catalog.families).map(
    (family) =>
      `(SELECT count() FROM ${closedTable(family)} FINAL WHERE account_id = {account:String} AND revision = {revision:String})`,
  );
  const query = `SELECT toFloat64(${counts.join(' + ')}) AS rows`;
  return (await selectOne<{ rows: number }>(store, query, { account, revision })).rows;
}

/** Now, but never before the last close of the month, whatever the clock says. */
async function timeAfter(store: Store, last: Close | undefined): Promise<string> {
  const row = await selectOne<{ at: string }>(
    store,
    `SELECT toString(greatest(now64(6, 'UTC'), toDateTime64({last:String}, 6, 'UTC') + toIntervalMicrosecond(1))) AS at`,
    { last: last?.closed_at ?? '1970-01-01 00:00:00.000000' },
  );
  return row.at;
}
