import { changesTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { chunksInDoubt, requireNoChunkInDoubt } from '../chunks-in-doubt.ts';
import { type Store, select } from '../client.ts';
import { onShards, type Shard } from '../cluster/on-nodes.ts';
import { shardingKey } from '../cluster/sharding-key.ts';
import { monthsWithin } from '../months.ts';
import { changedAt, type Rollup, rollupPartition, rollups, selectOf } from '../rollups.ts';
import { damagedParts, daysOfPart, describeDamagedPart, requireWholeTable } from './damaged-parts.ts';
import {
  dropStaging,
  dropStagingOf,
  exchangeMonths,
  fillSettings,
  type Month,
  newStaging,
  stageMonths,
} from './replace-months.ts';
import { beginRewrite, endRewrite } from './rewrites.ts';
import { type DayRange, daySlices, everyDay } from './verify-rollups.ts';

export interface RebuildOptions {
  /** Called when a rollup is computed, with what is done. Reports show all of it at the end. */
  readonly onStep?: (done: string) => void;
  /** Rebuild even if there are unsettled chunks: a load that finds one then compares it with what is there. */
  readonly allowUnsettledChunks?: boolean;
  /** It is a part of a rewrite that the caller has begun, and what differs is what that changes. */
  readonly isRewrite?: boolean;
  /** Called before the exchange; throws when events may have been loaded that the new rollups lack. */
  readonly beforeExchange?: () => void;
}

/**
 * Recomputes every rollup from the raw events, for all months that the ranges touch or a damaged part of a rollup is of, and
 * returns the number of months and rollups. A month without events ends up empty.
 *
 * First all rollups are computed beside the old ones. Then each is replaced in one step, whatever the number of months,
 * one right after the other. So a reader sees either the old rollup or the new one. In a cluster that is so for each shard:
 * for an account on several shards a report can have the old one of some of them, and with replicas a month is a step. The
 * rebuild or ClickHouse can be killed at any point; run it again, and it removes what was left behind.
 *
 * The caller makes sure that no load and no other rebuild runs at the same time: a chunk that arrives between the
 * build and the exchange of a rollup would be missing from it.
 *
 * The new rollup knows no dedup ids of chunks, whatever their month: only the ledger (`load_chunks`) then prevents a
 * chunk from being sent and counted again. A load that finds an unsettled chunk sees that rollups were rebuilt.
 * @throws {UnsettledChunk} when it is unknown whether a chunk with events arrived completely
 * @throws when events of these months are damaged, and no load is taken back or replaced; or when ClickHouse finds damage
 * while it runs
 */
export async function rebuildRollups(
  store: Store,
  catalog: Catalog,
  range: DayRange | readonly DayRange[] = everyDay,
  { onStep, allowUnsettledChunks = false, isRewrite = false, beforeExchange }: RebuildOptions = {},
): Promise<{ months: number; rollups: number }> {
  const all = rollups(catalog);
  await dropStaging(store);
  const damaged = await damagedParts(store);
  const known = damaged.map(describeDamagedPart);
  // What tells of the damage goes with the old tables.
  const ofRollups = damaged.filter(({ table }) => all.some((rollup) => rollup.table === table));
  const ranges = 'from' in range ? [range] : range;
  const touched = await touchedMonths(store, all, [...ranges, ...ofRollups.map(daysOfPart)]);
  if (touched.length === 0) return { months: 0, rollups: all.length };
  const touchedNumbers = touched.map(({ month }) => month);
  if (!allowUnsettledChunks) {
    // Rollups have what damaged events lack.
    await requireWholeTable(store, 'events', touchedNumbers);
    await requireNoUnsettledChunk(store, 'rebuild');
  }
  const runs: DayRange[][] = [];
  for (const days of touched) runs.push(await daySlices(store, ['events'], days));
  const months = isRewrite ? [] : touchedNumbers;
  const beganAt = await beginRewrite(store, months);
  const staging = newStaging();
  try {
    // In the order of the cascade: a coarser rollup is computed from what replaces the finer one.
    for (const [n, rollup] of all.entries()) {
      await onShards(store, (shard) => stage(shard, rollup, touched, runs, staging));
      onStep?.(`${n + 1}/${all.length} ${rollup.table}`);
    }
    beforeExchange?.();
    await onShards(store, async (shard) => {
      // Only the old table tells of a part that was damaged since the copy was filled. Of months that are not rebuilt the copy may
      // lack the rows of that part.
      const found = (await damagedParts(store))
        .map(describeDamagedPart)
        .find((each) => !known.includes(each));
      if (found) throw new Error(`${found}. That was while rollups were rebuilt: run the same command again`);
      for (const { table } of all) await exchangeMonths(shard, table, touched, staging(table));
    });
    // Nobody knows since when the rollups were wrong.
    if (!isRewrite) await endRewrite(store, months, { beganAt, isLost: hasChanged(catalog) });
  } finally {
    await dropStagingOf(
      store,
      all.map(({ table }) => staging(table)),
    );
  }
  return { months: touched.length, rollups: all.length };
}

/** SQL of whether days of the months changed since a rewrite began. */
function hasChanged({ families }: Catalog): string {
  const changes = Object.keys(families).map(
    (family) => `SELECT 1 FROM ${changesTable(family)} AS c
      WHERE ${rollupPartition} IN {months:Array(UInt32)} AND c.changed_at >= toDateTime64({beganAt:String}, 6, 'UTC')`,
  );
  return `(SELECT count() > 0 FROM (${changes.join(' UNION ALL ')}))`;
}

/** Computes what replaces a rollup, on a single node or on one shard. */
async function stage(
  shard: Shard,
  rollup: Rollup,
  touched: readonly Month[],
  runs: readonly DayRange[][],
  staging: (table: string) => string,
): Promise<void> {
  const { store, part } = shard;
  const select = rollup.owner ? selectOfEvents(rollup, part) : selectOf(rollup, staging(rollup.source));
  const replacement = staging(rollup.table);
  await stageMonths(shard, rollup.table, touched, replacement, async () => {
    for (const days of runs.flat()) await fill(store, replacement, rollup, select, days);
    // Before the exchange: a rebuild that is killed right after it finds no difference when it is repeated. Of whole
    // months, because the old rollup can have days without events.
    for (const month of touched) await recordDifferences(store, rollup, replacement, month);
  });
}

/** On one shard there are all events of an advertiser; those of a publisher are on many. */
function selectOfEvents(rollup: Rollup, part: Shard['part']): string {
  if (!part || rollup.owner !== 'publisher_id') return selectOf(rollup);
  const { number, layout } = part;
  const { sharding } = layout;
  const here = `${shardingKey('publisher', sharding)} = ${number - 1}`;
  return selectOf(rollup, `${sharding.database}.events`, here);
}

/** When loads last changed a day does not follow from the events: the rollup that is replaced tells it. */
async function fill(
  store: Store,
  staging: string,
  { table, columns }: Rollup,
  select: string,
  days: DayRange,
): Promise<void> {
  const names = columns.map(({ name }) => name);
  const computed = names.filter((name) => name !== changedAt).join(', ');
  const inDays = 'WHERE day BETWEEN {from:Date} AND {to:Date}';
  const kept = `LEFT JOIN (
    SELECT account_id, day, max(o.${changedAt}) AS ${changedAt} FROM ${table} AS o ${inDays} GROUP BY account_id, day
  ) AS old USING (account_id, day)`;
  await store.command({
    query: `INSERT INTO ${staging} (${names.join(', ')})
            SELECT ${names.join(', ')} FROM (SELECT ${computed} FROM (${select}) ${inDays}) AS new
            ${names.includes(changedAt) ? kept : ''}`,
    query_params: { ...days },
    clickhouse_settings: fillSettings,
  });
}

/**
 * Records as changed now the days, by account, on which a rollup and its replacement differ in any row. On a single
 * node or on one shard.
 */
async function recordDifferences(
  store: Store,
  { family, table, columns }: Rollup,
  replacement: string,
  { from, to }: DayRange,
): Promise<void> {
  const compared = columns.map(({ name }) => name).filter((name) => name !== changedAt);
  const hash = `cityHash64(${compared.join(', ')})`;
  const rows = (source: string, count: number) =>
    `SELECT account_id, day, ${hash} AS row, ${count} AS counted FROM ${source} FINAL WHERE day BETWEEN {from:Date} AND {to:Date}`;
  await store.command({
    query: `INSERT INTO ${changesTable(family)} (account_id, day, changed_at)
            SELECT account_id, day, now64(6, 'UTC')
            FROM (${rows(table, -1)} UNION ALL ${rows(replacement, 1)})
            GROUP BY account_id, day HAVING groupBitXor(row) != 0 OR sum(counted) != 0`,
    query_params: { from, to },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
}

/** The months touched by the ranges that have events or rollup rows, with their first and last day that has any. */
async function touchedMonths(
  store: Store,
  all: readonly Rollup[],
  ranges: readonly DayRange[],
): Promise<Month[]> {
  // A list of months, so that nothing is read of others.
  const days = ['events', ...all.map(({ table }) => table)].map(
    (table) => `SELECT DISTINCT day FROM ${table} WHERE ${rollupPartition} IN {months:Array(UInt32)}`,
  );
  return select<Month>(
    store,
    `SELECT ${rollupPartition} AS month, toString(min(d.day)) AS from, toString(max(d.day)) AS to
     FROM (${days.join(' UNION ALL ')}) AS d GROUP BY month ORDER BY month`,
    { months: monthsWithin(ranges) },
  );
}

/**
 * Loading its file again completes an unsettled chunk; once rollups are rebuilt or events folded, its events would have to
 * be deleted first. Of the days of the range.
 * @param before what cannot be done before it is completed
 * @throws {UnsettledChunk} when it is unknown whether a chunk with events on these days arrived completely
 */
export async function requireNoUnsettledChunk(
  store: Store,
  before: 'rebuild' | 'prune' | 'close',
  range: DayRange = everyDay,
): Promise<void> {
  const has = (table: string) =>
    `c.chunk IN (SELECT chunk FROM ${table} WHERE day BETWEEN {from:Date} AND {to:Date} AND chunk IN (SELECT chunk FROM (${chunksInDoubt()})))`;
  await requireNoChunkInDoubt(store, before, `${has('events')} OR ${has('chunk_days')}`, { ...range });
}
