import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select, storeTime } from '../../clickhouse/client.ts';
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
 * them were unconfirmed before.
 */
export async function confirmDays(
  store: Store,
  account: string,
  from: string,
  to: string,
): Promise<{ days: number; changed: number; running?: string }> {
  const began = await storeTime(store);
  const { time, running } = await confirmationTime(store);
  const confirmedAt = "toDateTime64({time:String}, 6, 'UTC')";
  const inRange = 'account_id = {account:String} AND day BETWEEN {from:Date} AND {to:Date}';
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
  return { days, changed: await newlyConfirmedDays(store, began, time), ...(running && { running }) };
}

/** Marks the days of a list as confirmed, likewise. @throws {InputError} and confirms nothing when a line is faulty */
export async function confirmList(
  store: Store,
  input: Input,
  reading?: ListReading,
): Promise<{ days: number; changed: number; running?: string }> {
  const began = await storeTime(store);
  const { time, running } = await confirmationTime(store);
  const days = await loadLookupList(store, lookupLists.confirmations, input, reading, time);
  return { days, changed: await newlyConfirmedDays(store, began, time), ...(running && { running }) };
}

/** How many days a confirmation of this time has made confirmed since it began. */
async function newlyConfirmedDays(store: Store, began: string, time: string): Promise<number> {
  const [row] = await select<{ days: number }>(
    store,
    `SELECT toFloat64(uniqExact(account_id, day)) AS days FROM confirmations AS c
     WHERE c.confirmed_at = toDateTime64({time:String}, 6, 'UTC')
       AND greatest(${newlyConfirmedColumns.join(', ')}) >= toDateTime64({began:String}, 6, 'UTC')`,
    { began, time },
  );
  if (!row) throw new Error('ClickHouse did not count the confirmed days');
  return row.days;
}
