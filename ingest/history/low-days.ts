import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';

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

const sameWeekdays = [7, 14, 21, 28];
/** Of four: an account or a network that is younger has no like. Days without any are no like either, but holes. */
const enough = 3;
/** An account that had nothing for so many days has ended, and is not missed; longer than a weekend. */
const lately = [1, 2, 3];
const looksBack = [0, ...lately, ...sameWeekdays];

/**
 * The counts of the last `days` complete days, each compared with its like. One statement over the coarsest rollups; of
 * one day it reads the eight days that it needs.
 */
export async function judgeDays(
  store: Store,
  now: Date,
  { timezone, days, rule }: { readonly timezone: string; readonly days: number; readonly rule: LowDayRule },
): Promise<readonly JudgedDay[]> {
  const last = lastCompleteDay(now, timezone, rule.afterHours);
  const judged = Array.from({ length: days }, (_, n) => daysBefore(last, n));
  const read = [...new Set(judged.flatMap((day) => looksBack.map((n) => daysBefore(day, n))))];
  const rows = await select<
    Omit<JudgedDay, 'low' | 'lowest'> & { low: 0 | 1; lowest: [number, string, number, number][] }
  >(store, statement, { judged, read, percent: rule.percent, events: rule.events });
  return rows.map(({ low, lowest, ...row }) => ({
    ...row,
    low: low === 1,
    lowest: lowest.map(([, account, events, usual]) => ({ account, events, usual })),
  }));
}

/** The day that ended at least so many hours ago. */
function lastCompleteDay(now: Date, timeZone: string, hours: number): string {
  const then = new Date(now.getTime() - hours * 3_600_000);
  return daysBefore(new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(then), 1);
}

function daysBefore(day: string, count: number): string {
  return new Date(Date.parse(day) - count * 86_400_000).toISOString().slice(0, 10);
}

/** The sums by account and day of a family, and of all accounts together, whose id is empty as no account's is. */
function sumsOf(family: string): string {
  const counts = Object.entries(catalog.families[family]?.measures ?? {}).filter(
    ([, { type }]) => type === 'Numeric',
  );
  return `SELECT '${family}' AS family, account_id AS account, day,
      [${counts.map(([name]) => `('${name}', sum(r.${name}))`).join(', ')}] AS counts
    FROM ${rollupTable(family, [])} AS r WHERE day IN {read:Array(Date)}
    GROUP BY GROUPING SETS ((account_id, day), (day))`;
}

const statement = `
  SELECT family, measure, toString(judged_day) AS day, sumIf(value, account = '') AS events,
    sumIf(median, account = '') AS usual, maxIf(is_low, account = '') AS low,
    toFloat64(countIf(is_low AND account != '')) AS accounts,
    if(usual > 0, sumIf(median - value, is_low AND account != '') / usual, 0) AS missing,
    groupArraySortedIf(5)((value - median, account, value, median), is_low AND account != '') AS lowest
  FROM (
    SELECT family, count.1 AS measure, account, judged_day, toFloat64(sumIf(count.2, back = 0)) AS value,
      countIf(back IN (${sameWeekdays}) AND count.2 > 0) AS likes,
      if(likes >= ${enough}, toFloat64(medianExactLowIf(count.2, back IN (${sameWeekdays}) AND count.2 > 0)), 0) AS median,
      median > 0 AND median >= {events:UInt64} AND value * 100 < median * {percent:UInt64}
        AND (account = '' OR value > 0 OR countIf(back IN (${lately}) AND count.2 > 0) > 0) AS is_low
    FROM (
      SELECT family, account, counts, arrayJoin([${looksBack}]) AS back, day + back AS judged_day
      FROM (${Object.keys(catalog.families).map(sumsOf).join(' UNION ALL ')})
      WHERE judged_day IN {judged:Array(Date)}
    ) ARRAY JOIN counts AS count
    GROUP BY family, measure, account, judged_day
  ) GROUP BY family, measure, judged_day ORDER BY judged_day, family, measure`;
