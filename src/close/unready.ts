import { rollupTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { DamagedFigures, requireWholeStore, tablesOf } from '../../clickhouse/consistency/damaged-parts.ts';
import { requireNoUnsettledChunk, UnsettledChunk } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthName } from '../../clickhouse/months.ts';
import { verifyLedger } from '../../ingest/history/verify-ledger.ts';
import { LoadRefused } from '../../ingest/ledger/load-error.ts';
import { openRejects } from '../../ingest/rejects/rejected-rows.ts';
import { daysOfMonth, type Month } from './month.ts';

/**
 * Requires what `verify` checks of a month: no chunk is in doubt, and ledger, events and rollups agree.
 * @param account absent: of all accounts
 * @throws naming what does not agree
 */
export async function requireSoundMonth(
  store: Store,
  catalog: Catalog,
  month: Month,
  account?: string,
): Promise<void> {
  const { start: from, end: to } = daysOfMonth(month);
  await requireWholeMonth(store, catalog, month);
  await requireNoUnsettledChunk(store, 'close', { from, to }).catch((error: unknown) => {
    throw error instanceof UnsettledChunk ? new LoadRefused(error.message, 'month') : error;
  });
  const ledger = await verifyLedger(store, { from, to });
  const rollups = await verifyRollups(store, catalog, {
    from,
    to,
    ...(account !== undefined && { account }),
  });
  const wrong = ledger.differences.length + rollups.differences.length;
  if (wrong === 0) return;
  throw new LoadRefused(
    `${monthName(month)} cannot be closed: ledger, raw events and rollups differ; adtally verify --from ${from} --to ${to} lists where`,
    'month',
  );
}

/** Requires that no part of what the month is made of was set aside as damaged. @throws saying so */
export async function requireWholeMonth(store: Store, catalog: Catalog, month: Month): Promise<void> {
  const { start: first, end: last } = daysOfMonth(month);
  const tables = Object.keys(catalog.families).flatMap((family) => tablesOf(catalog, family));
  await requireWholeStore(store, { days: [{ first, last }], tables }).catch((error: unknown) => {
    if (!(error instanceof DamagedFigures)) throw error;
    throw new LoadRefused(`${monthName(month)} cannot be closed: ${error.message}`, 'month');
  });
}

/**
 * Rejected rows that are open, and may be of the month and the account. Their times are in UTC, or, of older rows, by a clock that
 * is not known, so the days right before and after the month count as well.
 */
export async function openRejectsOf(
  store: Store,
  { account, month }: { readonly account: string; readonly month: Month },
): Promise<number> {
  const { start, end } = daysOfMonth(month);
  const [row] = await select<{ open: number }>(
    store,
    `WITH ['advertiser_id', 'publisher_id'] AS owners,
       r.fields['event_time'] AS time,
       if(match(time, '^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{9,13}([.]|$))'), toDate(parseDateTime64BestEffortOrNull(time, 3, 'UTC')), NULL) AS told
     SELECT toFloat64(count()) AS open FROM rejected_rows AS r FINAL
     WHERE ${openRejects}
       AND arrayExists(owner -> r.fields[owner] = {account:String}, owners) + arrayAll(owner -> r.fields[owner] = '', owners) > 0
       AND ifNull(told BETWEEN {start:Date} - 1 AND {end:Date} + 1, true)`,
    { account, start, end },
  );
  if (!row) throw new Error('ClickHouse did not count the open rejected rows');
  return row.open;
}

/** The accounts that have rows in a month, or had some when it was closed, unless it was pruned since. */
export async function accountsOf(store: Store, catalog: Catalog, month: Month): Promise<string[]> {
  const { start, end } = daysOfMonth(month);
  const tables = Object.keys(catalog.families).map(
    (family) =>
      `SELECT account_id FROM ${rollupTable(family, [])} WHERE day BETWEEN {start:Date} AND {end:Date} GROUP BY account_id`,
  );
  const ofCloses = `SELECT account_id FROM closes WHERE month = {month:UInt32}
    AND {month:UInt32} NOT IN (SELECT month FROM pruned_months) GROUP BY account_id`;
  const accounts = await select<{ account: string }>(
    store,
    `SELECT DISTINCT account_id AS account FROM (${[...tables, ofCloses].join(' UNION ALL ')}) ORDER BY account`,
    { start, end, month },
  );
  return accounts.map(({ account }) => account);
}
