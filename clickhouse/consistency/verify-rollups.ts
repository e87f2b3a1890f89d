import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../client.ts';
import { type Layout, layoutOf } from '../cluster/layout.ts';
import { shardingKey } from '../cluster/sharding-key.ts';
import { changedAt, type Rollup, rollups, selectOf } from '../rollups.ts';

/** Days, `yyyy-mm-dd`, both included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** The days of one account, or of all. */
export interface AccountDays extends DayRange {
  readonly account?: string;
}

/** A disagreement of a rollup with the raw events, for one account and day. Values are exact, as text. */
export interface Difference {
  readonly table: string;
  readonly account: string;
  /** `yyyy-mm-dd` */
  readonly day: string;
  /**
   * A measure of the rollup, `unconfirmed_at`, `keys` (the number of distinct grouping keys), or `rows` (the number
   * of keys with other sums, given only where everything else agrees: the sums are at the wrong keys). In a cluster
   * also `shard`: the one on which reports look for the account, and another one that has rows of it.
   */
  readonly measure: string;
  readonly events: string;
  readonly rollup: string;
}

export interface Verification {
  /** At most `maxDifferences`, earlier days first. */
  readonly differences: readonly Difference[];
  /** There are more differences than are listed. */
  readonly more: boolean;
}

/** Nobody would read more. */
const maxDifferences = 1000;
const rowsAtOnce = 4_000_000;

/** The range of ClickHouse's `Date`. */
export const everyDay: DayRange = { from: '1970-01-01', to: '2149-06-06' };

/**
 * Compares every rollup with the raw events, key by key, for the days of the range, and returns the differences by
 * account and day. ClickHouse does the comparing, a few days at a time, and returns only differences. Changes nothing.
 * Rows that a load adds at the same time can show up as differences: run it while nothing is loaded.
 */
export async function verifyRollups(
  store: Store,
  catalog: Catalog,
  { account, ...range }: AccountDays = everyDay,
): Promise<Verification> {
  const all = rollups(catalog);
  const layout = await layoutOf(store);
  const misplaced = layout ? await misplacedAccounts(store, all, range, layout) : [];
  const differences = misplaced.filter((each) => account === undefined || each.account === account);
  for (const slice of await daySlices(store, ['events', ...all.map(({ table }) => table)], range)) {
    const wrong: Rollup[] = [];
    for (const rollup of all) {
      if (differences.length > maxDifferences) break;
      const limit = maxDifferences - differences.length + 1;
      const query = comparisonQuery(rollup, wrong, account !== undefined);
      const found = await select<Difference>(store, query, { ...slice, limit, ...(account && { account }) });
      if (found.length) wrong.push(rollup);
      differences.push(...found);
    }
  }
  const more = differences.length > maxDifferences;
  return { differences: differences.slice(0, maxDifferences), more };
}

/** Accounts that have rows on a shard that their reports do not read. */
async function misplacedAccounts(
  store: Store,
  all: readonly Rollup[],
  range: DayRange,
  { sharding }: Layout,
): Promise<Difference[]> {
  const home = `1 + ${shardingKey('account', sharding)}`;
  const tables = all.map(
    ({ table }) =>
      `SELECT '${table}' AS table, account_id AS account, toString(min(r.day)) AS day, 'shard' AS measure,
              toString(${home}) AS events, toString(_shard_num) AS rollup
       FROM ${table} AS r WHERE r.day BETWEEN {from:Date} AND {to:Date}
       GROUP BY account_id, _shard_num
       HAVING events != rollup AND account_id NOT IN (SELECT account_id FROM placements FINAL WHERE read_all)`,
  );
  return select<Difference>(
    store,
    `SELECT * FROM (${tables.join(' UNION ALL ')}) ORDER BY day, account, table LIMIT ${maxDifferences + 1}`,
    { ...range },
  );
}

/**
 * Cuts a range into runs of days that have about `rowsAtOnce` rows in all tables together, at least one day each.
 * This bounds the memory of grouping them: a month of 10 million events with hardly two alike took 7.5 GiB at once,
 * and five times as long when it was made to spill to disk.
 */
export async function daySlices(
  store: Store,
  tables: readonly string[],
  range: DayRange,
): Promise<DayRange[]> {
  const counts = tables.map(
    (table) =>
      `SELECT day, count() AS rows FROM ${table} WHERE day BETWEEN {from:Date} AND {to:Date} GROUP BY day`,
  );
  return select<DayRange>(
    store,
    `SELECT toString(min(s.day)) AS from, toString(max(s.day)) AS to
     FROM (
       SELECT day, intDiv(sum(sum(rows)) OVER (ORDER BY day), {rowsAtOnce:UInt64}) AS slice
       FROM (${counts.join(' UNION ALL ')}) GROUP BY day) AS s
     GROUP BY slice ORDER BY slice`,
    { ...range, rowsAtOnce },
  );
}

/**
 * A query with one row per difference of a rollup on some days. The expected rows come from the SELECT of its view,
 * which reads a finer rollup. If that one equals the events, it is read as stored; if it does not (it is in `wrong`),
 * a CTE of its name with the SELECT of its own view takes its place.
 */
function comparisonQuery(rollup: Rollup, wrong: readonly Rollup[], ofAccount: boolean): string {
  const { table, sortingKey } = rollup;
  const measures = measuresOf(rollup);
  const days = `day BETWEEN {from:Date} AND {to:Date}${ofAccount ? ' AND account_id = {account:String}' : ''}`;
  const columns = [...sortingKey, ...measures.map(({ name }) => name)];
  const counted = (each: Rollup) => `SELECT * FROM (${selectOf(each)}) WHERE ${days}`;
  const pair = (name: string, events: string, stored: string) =>
    `('${name}', toString(${events}), toString(${stored}))`;
  const differing = measures.map(({ name }) => `events_${name} != rollup_${name}`);

  return `
WITH
${[...wrong.map((each) => `${each.table} AS (${counted(each)})`), `expected AS (${counted(rollup)})`].join(',\n')},
both_sides AS (
  SELECT ${columns.join(', ')}, 1 AS counted FROM expected
  UNION ALL
  SELECT ${columns.join(', ')}, 0 AS counted FROM ${table} WHERE ${days}
),
by_key AS (
  SELECT ${sortingKey.join(', ')},
    ${measures
      .map(
        ({ name, merge }) =>
          `${merge}If(s.${name}, counted = 1) AS events_${name}, ${merge}If(s.${name}, counted = 0) AS rollup_${name}`,
      )
      .join(',\n    ')},
    max(counted = 1) AS in_events, max(counted = 0) AS in_rollup
  FROM both_sides AS s GROUP BY ${sortingKey.join(', ')}
),
by_day AS (
  SELECT account_id, day,
    ${measures
      .map(
        ({ name, merge }) =>
          `${merge}(k.events_${name}) AS events_${name}, ${merge}(k.rollup_${name}) AS rollup_${name}`,
      )
      .join(',\n    ')},
    sum(in_events) AS events_keys, sum(in_rollup) AS rollup_keys,
    countIf(in_events != in_rollup OR ${measures.map(({ name }) => `k.events_${name} != k.rollup_${name}`).join(' OR ')}) AS wrong_keys
  FROM by_key AS k GROUP BY account_id, day HAVING wrong_keys > 0
)
SELECT '${table}' AS table, account_id AS account, toString(day) AS day, difference.1 AS measure,
  difference.2 AS events, difference.3 AS rollup
FROM by_day ARRAY JOIN arrayFilter(pair -> pair.2 != pair.3, [
  ${measures.map(({ name }) => pair(name, `events_${name}`, `rollup_${name}`)).join(', ')},
  ${pair('keys', 'events_keys', 'rollup_keys')},
  ('rows', '0', if(events_keys != rollup_keys OR ${differing.join(' OR ')}, '0', toString(wrong_keys)))
]) AS difference
ORDER BY account, by_day.day, measure LIMIT {limit:UInt32}`;
}

/** The columns that follow from the events and are not keys. */
function measuresOf({ columns }: Rollup): { name: string; merge: string }[] {
  return columns.flatMap(({ name, merge }) => (merge && name !== changedAt ? [{ name, merge }] : []));
}
