import { type Store, select } from '../../clickhouse/client.ts';

/** How many days of an advertiser have money that is not confirmed. */
export async function unconfirmedDays(store: Store, account: string): Promise<number> {
  const [row] = await select<{ days: number }>(
    store,
    `SELECT toFloat64(count()) AS days FROM (
       SELECT day, max(r.unconfirmed_at) AS loaded FROM campaigns_date AS r WHERE account_id = {account:String} GROUP BY day) AS u
     LEFT JOIN (
       SELECT day, max(k.confirmed_at) AS confirmed FROM confirmations AS k WHERE account_id = {account:String} GROUP BY day) AS c
       ON c.day = u.day
     WHERE u.loaded > c.confirmed`,
    { account },
  );
  if (!row) throw new Error('ClickHouse did not count');
  return row.days;
}
