import { rollupTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { UnsettledChunk } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { DamagedFigures, requireWholeStore, tablesOf } from '../../clickhouse/consistency/damaged-parts.ts';
import { requireNoUnsettledChunk } from '../../clickhouse/consistency/rebuild-rollups.ts';
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
  const rollups = await verifyRollups(store, catalog, { from, to, account });
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
 * How many open rejected rows may be of the month and an account; those without an account may be of any. Their times are in UTC,
 * or, of older rows, by a clock that is not known, so the days right before and after the month count as well.
 */
export async function openRejectsIn(store: Store, month: Month): Promise<(account: string) => number> {
  const { start, end } = daysOfMonth(month);
  const rows = await select<{ account: string; open: number }>(
    store,
    `WITH arrayDistinct([r.fields['advertiser_id'], r.fields['publisher_id']]) AS owners,
       r.fields['event_time'] AS time,
       if(match(time, '^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{9,13}([.]|$))'), toDate(parseDateTime64BestEffortOrNull(time, 3, 'UTC')), NULL) AS told
     SELECT arrayJoin(if(owners = [''], owners, arrayFilter(owner -> owner != '', owners))) AS account, toFloat64(count()) AS open
     FROM rejected_rows AS r FINAL
     WHERE ${openRejects} AND ifNull(told BETWEEN {start:Date} - 1 AND {end:Date} + 1, true) GROUP BY account`,
    { start, end },
  );
  const open = new Map(rows.map((row) => [row.account, row.open]));
  return (account) => (open.get(account) ?? 0) + (open.get('') ?? 0);
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
