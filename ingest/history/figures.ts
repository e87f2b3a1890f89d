import { closedTable, rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { chunksInDoubt } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, selectOne } from '../../clickhouse/client.ts';
import { runningLoads, stateColumn } from '../ledger/load-heartbeat.ts';
import { leavingLoads } from '../ledger/load-records.ts';
import { openRejects } from '../rejects/rejected-rows.ts';

/** What is open in a store: it waits for a person, or for the same command again. */
export interface OpenWork {
  /** Rejected rows that are neither replayed nor dismissed. */
  readonly rejectedRows: number;
  /** Chunks of loads that failed or were interrupted: it is unknown whether all of them arrived. */
  readonly chunksInDoubt: number;
  /** Days with unconfirmed money, each counted once for an account and family. */
  readonly unconfirmedDays: number;
}

/** One statement each, so that a user who may not ask for one of them can ask for the others. */
export const openWork: Readonly<Record<keyof OpenWork, string>> = {
  rejectedRows: `SELECT toFloat64(count()) AS figure FROM rejected_rows FINAL WHERE ${openRejects}`,
  // Who sent it last is the load that `status` and `loads` name: taken back, it leaves nothing to be completed.
  chunksInDoubt: `SELECT toFloat64(count()) AS figure FROM (
    SELECT argMax(load_id, c.sent_at) AS load FROM load_chunks AS c WHERE (head, chunk) IN (${chunksInDoubt()})
    GROUP BY head, chunk
    HAVING load NOT IN (${runningLoads}) AND load NOT IN (${leavingLoads}) AND load NOT IN (SELECT load_id FROM loads FINAL WHERE state = 'unloaded'))`,
  unconfirmedDays: `SELECT toFloat64(count()) AS figure, if(figure > 0, toString(min(day)), '') AS oldest_day,
    argMin(account_id, day) AS oldest_account FROM (
    SELECT account_id, day, family FROM (
      ${Object.keys(catalog.families)
        .map(
          (family) =>
            `SELECT '${family}' AS family, account_id, day, r.unconfirmed_at AS unconfirmed_at FROM ${rollupTable(family, [])} AS r WHERE toUInt64(r.unconfirmed_at) > 0`,
        )
        .join(' UNION ALL ')}
    ) AS u LEFT JOIN (SELECT account_id, day, max(confirmed_at) AS confirmed_at FROM confirmations GROUP BY account_id, day) AS c
      ON c.account_id = u.account_id AND c.day = u.day
    GROUP BY account_id, day, family HAVING max(u.unconfirmed_at) > max(c.confirmed_at))`,
};

/** Days with unconfirmed money. */
export interface UnconfirmedDays {
  readonly figure: number;
  /** `yyyy-mm-dd`; empty if there are no events. */
  readonly oldest_day: string;
  /** An account of that day. */
  readonly oldest_account: string;
}

/** @throws when ClickHouse does not tell */
export async function unconfirmedDays(store: Store): Promise<UnconfirmedDays> {
  return selectOne<UnconfirmedDays>(store, openWork.unconfirmedDays);
}

/** @throws when ClickHouse does not tell */
export async function askFigure(store: Store, statement: string): Promise<number> {
  const row = await selectOne<{ figure: number }>(store, statement);
  return row.figure;
}

/** The loads that began on a day, and how they ended. Rebuilds of rollups do not count. */
export interface LoadsOfDay {
  readonly loads: number;
  readonly failed: number;
  readonly running: number;
  readonly rows: number;
  readonly rejected_rows: number;
  readonly bytes: number;
  /** The end of the last load of any day, `yyyy-mm-dd hh:mm:ss` in UTC; empty while none has ended. */
  readonly last_ended: string;
}

/** Ids begin with the time of the load, in UTC, so that only loads of that day and later ones are read. */
const sinceDay = "load_id >= formatDateTime(toStartOfDay({day:Date}, {timezone:String}), '%Y%m%d', 'UTC')";

/** @param day `yyyy-mm-dd`, in `timezone` */
export async function loadsOf(store: Store, day: string, timezone: string): Promise<LoadsOfDay> {
  return selectOne<LoadsOfDay>(
    store,
    `WITH ${stateColumn} AS now
     SELECT toFloat64(count()) AS loads, toFloat64(countIf(now IN ('failed', 'dead'))) AS failed,
       (SELECT toFloat64(count()) FROM (${runningLoads})) AS running, toFloat64(sum(l.rows)) AS rows,
       toFloat64(sum(l.rejected_rows)) AS rejected_rows, toFloat64(sum(l.bytes)) AS bytes,
       (SELECT if(max(e.finished_at) > 0, toString(toDateTime(max(e.finished_at), 'UTC')), '') FROM loads AS e WHERE kind != 'rebuild') AS last_ended
     FROM loads AS l FINAL WHERE kind != 'rebuild' AND ${sinceDay} AND toDate(started_at, {timezone:String}) = {day:Date}`,
    { day, timezone },
  );
}

/** What the tables of a store take on the server that is asked; of a cluster, on that node. */
export interface StoreSize {
  readonly bytes: number;
  readonly parts: number;
  /** Of the partition that has most; ClickHouse slows inserts down from 1,000 on. */
  readonly most_parts: number;
}

export const storeSize = `SELECT toFloat64(sum(p.of_bytes)) AS bytes, toFloat64(sum(p.of_parts)) AS parts, toFloat64(max(p.of_parts)) AS most_parts
  FROM (SELECT sum(bytes_on_disk) AS of_bytes, count() AS of_parts FROM system.parts
        WHERE active AND database IN (currentDatabase(), concat(currentDatabase(), '_shard')) GROUP BY database, table, partition_id) AS p`;

/** What was closed, and what that takes on the server that is asked; of a cluster, on that node. */
export interface ClosedSize {
  /** Months, each counted once for an account. */
  readonly months: number;
  readonly bytes: number;
}

export interface PastSize {
  /** Events that were taken back or replaced. */
  readonly events: number;
  readonly bytes: number;
}

export const pastSize = `SELECT (SELECT toFloat64(count()) FROM past_events) AS events, toFloat64(sum(bytes_on_disk)) AS bytes
  FROM system.parts WHERE active AND database IN (currentDatabase(), concat(currentDatabase(), '_shard'))
    AND table IN ('past_events', 'past_names', 'past_confirmations', 'rewrites')`;

export const closedSize = `SELECT toFloat64(uniqExact(account_id, month)) AS months,
  (SELECT toFloat64(sum(bytes_on_disk)) FROM system.parts WHERE active AND database IN (currentDatabase(), concat(currentDatabase(), '_shard'))
     AND table IN (${['closes', ...Object.keys(catalog.families).map(closedTable)].map((table) => `'${table}'`).join(', ')})) AS bytes
  FROM closes`;
