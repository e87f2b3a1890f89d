import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import type { Input } from '../input/input.ts';
import { confirmationTime } from './confirmation-time.ts';
import { type ListReading, loadLookupList, lookupLists } from './lookup-lists.ts';
import { newlyConfirmed, newlyConfirmedColumns } from './newly-confirmed.ts';
import { recordShownConfirmations } from './record-shown.ts';

/** An account and its days; what is absent does not limit. */
export interface ConfirmationRange {
  readonly account?: string;
  /** `yyyy-mm-dd`, inclusive. */
  readonly from?: string;
  readonly to?: string;
}

/** Whether any event of the account was ever loaded. */
export async function isKnownAccount(store: Store, account: string): Promise<boolean> {
  const tables = Object.keys(catalog.families).map((name) => rollupTable(name, []));
  const query = tables.map((table) => `(SELECT 1 FROM ${table} WHERE account_id = {account:String} LIMIT 1)`);
  return (await select(store, query.join(' UNION ALL '), { account })).length > 0;
}

/**
 * Marks an account's revenue as confirmed for the days `from` to `to`. Returns how many days that is, and how many of
 * them were unconfirmed before.
 */
export async function confirmDays(
  store: Store,
  account: string,
  from: string,
  to: string,
): Promise<{ days: number; changed: number; running?: string }> {
  const range = { account, from, to };
  const before = await unconfirmedDays(store, range);
  const { time, running } = await confirmationTime(store);
  const confirmedAt = "toDateTime64({time:String}, 6, 'UTC')";
  const inRange = 'account_id = {account:String} AND day BETWEEN {from:Date} AND {to:Date}';
  await store.command({
    query: `INSERT INTO confirmations (account_id, day, confirmed_at, ${newlyConfirmedColumns.join(', ')})
            SELECT {account:String} AS account_id, each AS day, ${confirmedAt},
              ${newlyConfirmed('(account_id, day)', confirmedAt, inRange).join(', ')}
            FROM (SELECT arrayJoin(arrayMap(n -> {from:Date} + n, range(toUInt32({to:Date} - {from:Date} + 1)))) AS each)`,
    query_params: { ...range, time },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
  await recordShownConfirmations(store, time);
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1;
  return { days, changed: before - (await unconfirmedDays(store, range)), ...(running && { running }) };
}

/** Marks the days of a list as confirmed, likewise. @throws {InputError} and confirms nothing when a line is faulty */
export async function confirmList(
  store: Store,
  input: Input,
  reading?: ListReading,
): Promise<{ days: number; changed: number; running?: string }> {
  const before = await unconfirmedDays(store);
  const { time, running } = await confirmationTime(store);
  const days = await loadLookupList(store, lookupLists.confirmations, input, reading, time);
  return { days, changed: before - (await unconfirmedDays(store)), ...(running && { running }) };
}

/** The number of days with unconfirmed revenue in any family, summed over the accounts. */
export async function unconfirmedDays(
  store: Store,
  { account, from, to }: ConfirmationRange = {},
): Promise<number> {
  const where = [
    'day BETWEEN {from:Date} AND {to:Date}',
    ...(account === undefined ? [] : ['account_id = {account:String}']),
  ].join(' AND ');
  const [row] = await select<{ days: number }>(
    store,
    `SELECT toUInt32(count()) AS days FROM (
       SELECT account_id, day FROM (
         ${Object.keys(catalog.families)
           .map((name) => rollupTable(name, []))
           .map(
             (table) =>
               `SELECT account_id, day, max(r.unconfirmed_at) AS unconfirmed_at, toDateTime64(0, 6) AS confirmed_at FROM ${table} AS r WHERE ${where} GROUP BY account_id, day`,
           )
           .join(' UNION ALL ')}
         UNION ALL
         SELECT account_id, day, toDateTime64(0, 6) AS unconfirmed_at, max(c.confirmed_at) AS confirmed_at FROM confirmations AS c WHERE ${where} GROUP BY account_id, day)
       GROUP BY account_id, day HAVING max(unconfirmed_at) > max(confirmed_at))`,
    { from: from ?? '1970-01-01', to: to ?? '2149-06-06', ...(account !== undefined && { account }) },
  );
  if (!row) throw new Error('ClickHouse did not count the unconfirmed days');
  return row.days;
}
