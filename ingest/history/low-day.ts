import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { localDay } from '../../clickhouse/local-time.ts';

/** When a day has too little: its counts are compared with the median of the same weekdays before. */
export interface LowDayRule {
  /** Below this part of the median, in per cent. */
  readonly percent: number;
  /** A median below this is no measure: small numbers halve by chance. */
  readonly events: number;
  /** How long after its end a day is complete: what comes late has come. */
  readonly afterHours: number;
}

/** One count of a whole family on one day, and the accounts that have too little of it. */
export interface JudgedDay {
  readonly family: string;
  readonly measure: string;
  /** `yyyy-mm-dd`, in the time zone of the store. */
  readonly day: string;
  readonly events: number;
  /** The median of the same weekdays before; 0: there are too few of them. */
  readonly usual: number;
  readonly low: boolean;
  readonly accounts: number;
  /** What these accounts lack, as a part of what the whole family usually has. */
  readonly missing: number;
  /** Those that lack most, five at most. */
  readonly lowest: readonly LowAccount[];
}

export interface LowAccount {
  readonly account: string;
  readonly events: number;
  readonly usual: number;
}

/** An account that had nothing for so many days has ended, and is not missed; longer than a weekend. */
const lately = [1, 2, 3];
const sameWeekdays = [7, 14, 21, 28];
/** Of four: an account or a network that is younger has no like. Days without any are no like either, but holes. */
const enough = 3;
const read = [0, ...lately, ...sameWeekdays];

/**
 * The counts of the last complete day, each compared with its like. One statement over the coarsest rollups that reads
 * eight days of them, and groups by account alone: by account and day it took five times as long.
 */
export async function judgeDay(
  store: Store,
  now: Date,
  { timezone, rule }: { readonly timezone: string; readonly rule: LowDayRule },
): Promise<readonly JudgedDay[]> {
  const day = lastCompleteDay(now, timezone, rule.afterHours);
  const rows = await select<
    Omit<JudgedDay, 'low' | 'lowest'> & { low: 0 | 1; lowest: [number, string, number, number][] }
  >(store, statement, { day, percent: rule.percent, events: rule.events });
  return rows.map(({ low, lowest, ...row }) => ({
    ...row,
    low: low === 1,
    lowest: lowest.map(([, account, events, usual]) => ({ account, events, usual })),
  }));
}

/** The day that ended at least so many hours ago. */
function lastCompleteDay(now: Date, timeZone: string, hours: number): string {
  const then = new Date(now.getTime() - hours * 3_600_000);
  const day = localDay(then, timeZone);
  return new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
}

/** By account the name of each count, with its sums on the days of `read`. */
function sumsOf(family: string): string {
  const counts = Object.entries(catalog.families[family]?.measures ?? {}).flatMap(([name, { type }]) =>
    type === 'Numeric' ? [name] : [],
  );
  const sums = (name: string) => read.map((n) => `toFloat64(sumIf(r.${name}, r.day = {day:Date} - ${n}))`);
  return `SELECT '${family}' AS family, account_id AS account,
      [${counts.map((name) => `('${name}', [${sums(name).join(', ')}])`).join(', ')}] AS counts
    FROM ${rollupTable(family, [])} AS r WHERE r.day IN (${read.map((n) => `{day:Date} - ${n}`).join(', ')})
    GROUP BY account_id`;
}

/** The median of the same weekdays in an array of sums; the lower one of two in the middle. */
const medianOf = (sums: string): string =>
  `(arraySort(arrayFilter(n -> n > 0, arraySlice(${sums}, ${1 + read.length - sameWeekdays.length}))) AS like_${sums})[
    if(length(like_${sums}) < ${enough}, 0, intDiv(length(like_${sums}) + 1, 2))]`;

const isLow = (value: string, median: string): string =>
  `${median} > 0 AND ${median} >= {events:UInt64} AND ${value} * 100 < ${median} * {percent:UInt64}`;

const statement = `
  SELECT family, measure, {day:String} AS day, toFloat64(total[1]) AS events, ${medianOf('total')} AS usual,
    ${isLow('events', 'usual')} AS low, accounts, if(usual > 0, lacking / usual, 0) AS missing, lowest
  FROM (
    SELECT family, measure, sumForEach(sums) AS total, toFloat64(countIf(is_low)) AS accounts,
      sumIf(median - value, is_low) AS lacking,
      groupArraySortedIf(5)((value - median, account, value, median), is_low) AS lowest
    FROM (
      SELECT family, account, count.1 AS measure, count.2 AS sums, sums[1] AS value, ${medianOf('sums')} AS median,
        ${isLow('value', 'median')} AND arrayExists(n -> n > 0, arraySlice(sums, 1, ${1 + lately.length})) AS is_low
      FROM (${Object.keys(catalog.families).map(sumsOf).join(' UNION ALL ')}) ARRAY JOIN counts AS count
    ) GROUP BY family, measure
  ) ORDER BY family, measure`;
