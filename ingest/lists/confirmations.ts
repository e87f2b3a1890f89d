import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select, selectOne } from '../../clickhouse/client.ts';
import type { Input } from '../input/input.ts';
import { confirmationTime } from './confirmation-time.ts';
import { type ListReading, loadLookupList, lookupLists } from './lookup-lists.ts';
import { newlyConfirmed, newlyConfirmedColumns } from './newly-confirmed.ts';
import { recordShownConfirmations } from './record-shown.ts';

/** Whether any event of the account was ever loaded. */
export async function isKnownAccount(store: Store, account: string): Promise<boolean> {
  const tables = Object.keys(catalog.families).map((name) => rollupTable(name, []));
  const query = tables.map((table) => `(SELECT 1 FROM ${table} WHERE account_id = {account:String} LIMIT 1)`);
  return (await select(store, query.join(' UNION ALL '), { account })).length > 0;
}

/**
 * Marks an account's revenue as confirmed for the days `from` to `to`. Returns how many days that is, and how many of
 * them this has made confirmed.
 */
export async function confirmDays(
  store: Store,
  account: string,
  from: string,
  to: string,
): Promise<{ days: number; changed: number; running?: string }> {
  const { time, running } = await confirmationTime(store);
  const confirmedAt = "toDateTime64({time:String}, 6, 'UTC')";
  const inRange = 'account_id = {account:String} AND day BETWEEN {from:Date} AND {to:Date}';
  const changed = await newlyConfirmedDays(store, time, inRange, { account, from, to });
  await store.command({
    query: `INSERT INTO confirmations (account_id, day, confirmed_at, ${newlyConfirmedColumns.join(', ')})
            SELECT {account:String} AS account_id, each AS day, ${confirmedAt},
              ${newlyConfirmed('(account_id, day)', confirmedAt, inRange).join(', ')}
            FROM (SELECT arrayJoin(arrayMap(n -> {from:Date} + n, range(toUInt32({to:Date} - {from:Date} + 1)))) AS each)`,
    query_params: { account, from, to, time },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
  await recordShownConfirmations(store, time);
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000 + 1;
  return { days, changed: await changed(), ...(running && { running }) };
}

/** Marks the days of a list as confirmed, likewise. @throws {InputError} and confirms nothing when a line is faulty */
export async function confirmList(
  store: Store,
  input: Input,
  reading?: ListReading,
): Promise<{ days: number; changed: number; running?: string }> {
  const { time, running } = await confirmationTime(store);
  const changed = await newlyConfirmedDays(store, time);
  const days = await loadLookupList(store, lookupLists.confirmations, input, reading, time);
  return { days, changed: await changed(), ...(running && { running }) };
}

/**
 * What counts the days that a confirmation has made confirmed since now. While a load runs, several have the same time, and
 * the clocks of two servers differ: so it goes by what the rows have.
 * @param where SQL that says which accounts and days there can be
 */
async function newlyConfirmedDays(
  store: Store,
  time: string,
  where = '1',
  params: Readonly<Record<string, string>> = {},
): Promise<() => Promise<number>> {
  const madeAt = `greatest(${newlyConfirmedColumns.join(', ')})`;
  const rows = `FROM confirmations AS c WHERE ${where}`;
  const [last] = await select<{ at: string }>(store, `SELECT toString(max(${madeAt})) AS at ${rows}`, params);
  return async () => {
    const row = await selectOne<{ days: number }>(
      store,
      `SELECT toFloat64(uniqExact(account_id, day)) AS days ${rows}
         AND c.confirmed_at = toDateTime64({time:String}, 6, 'UTC') AND ${madeAt} > toDateTime64({last:String}, 6, 'UTC')`,
      { ...params, time, last: last?.at },
    );
    return row.days;
  };
}
