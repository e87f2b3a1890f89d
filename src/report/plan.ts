import type { Breakdown } from '../../catalog/breakdowns.ts';
import type { DateRange } from './request.ts';

/** Everything a report's statement depends on. */
export interface Plan {
  readonly breakdown: Breakdown;
  /** The owner of every row, from the login token and from nowhere else. */
  readonly account: string;
  /** As requested: what rows of an undated breakdown have as start_time and end_time. */
  readonly range: DateRange;
  /** The part of the range that ClickHouse's Date can hold; first > last if there is none. */
  readonly days: { readonly first: string; readonly last: string };
  /** Absent on a single node. */
  readonly routing?: ShardRouting;
}

/** Which shards of a cluster a report reads. */
export interface ShardRouting {
  /** The account's shard, or all of them if rows with the same key can be on several. */
  readonly shards: 'one' | 'all';
  /** The database in which shards find the dictionaries of names. */
  readonly database: string;
  /** Several nodes answer for a shard, and may differ for a moment. */
  readonly replicated?: boolean;
}

// The range of ClickHouse's Date. Any calendar date is a valid request, even one that no event can have.
const firstDay = '1970-01-01';
const lastDay = '2149-06-06';
export const everyDay: Plan['days'] = { first: firstDay, last: lastDay };

export function planReport(
  breakdown: Breakdown,
  account: string,
  range: DateRange,
  routing?: ShardRouting,
): Plan {
  const outside = range.end < firstDay || range.start > lastDay;
  const days = outside
    ? { first: lastDay, last: firstDay }
    : {
        first: range.start < firstDay ? firstDay : range.start,
        last: range.end > lastDay ? lastDay : range.end,
      };
  return { breakdown, account, range, days, ...(routing && { routing }) };
}
