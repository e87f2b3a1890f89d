import { type Breakdown, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog, Family } from '../../catalog/catalog.ts';
import { type DateRange, daysBetween } from './days.ts';
import type { ReportOptions } from './options.ts';

/** Everything a report's statement depends on. */
export interface Plan {
  readonly catalog: Catalog;
  readonly breakdown: Breakdown;
  /** That of the breakdown. */
  readonly family: Family;
  /** The owner of every row, from the login token and from nowhere else. */
  readonly account: string;
  /** As requested: what rows of an undated breakdown have as start_time and end_time. */
  readonly range: DateRange;
  readonly days: Days;
  readonly options: ReportOptions;
  /** The dimensions of the rollup that is read: at least those of the breakdown. */
  readonly reads: readonly string[];
  /** Of the account's money, where it is known: a sheet, headers and the tag of an export have it. */
  readonly currency?: string | undefined;
  /** The revisions whose rows are read instead of those of today. */
  readonly closed?: readonly string[];
  /** The revisions whose rows are taken away from those of today. */
  readonly adjusted?: readonly string[];
  /** Of adjustments that are split by load: when each month was closed, a Map of ClickHouse of yyyymm to microseconds since 1970. */
  readonly closedAt?: string;
  /** What a report as of a moment is computed from: see `asOf`. */
  readonly past?: Past;
  /** The days to compare with, and how many days later those of the range are that they are compared to. */
  readonly compared?: { readonly days: Days; readonly later: number } | undefined;
  /** Absent on a single node. */
  readonly routing?: ShardRouting;
}

/** What tells which rows a report as of a moment had. */
export interface Past {
  /** Days that changed since, or may have; `yyyy-mm-dd`. */
  readonly changed: readonly string[];
  /** Another text after each further rewrite of the months. */
  readonly rewrites: string;
  /** Another text when more came for these days. */
  readonly lastChange: string;
}

/** The part of a range that ClickHouse's Date can hold; first > last if it can hold no day of it. */
export interface Days {
  readonly first: string;
  readonly last: string;
}

/** Which shards of a cluster a report reads. */
export interface ShardRouting {
  /** The account's shard, or all of them if rows with the same key can be on several. */
  readonly shards: 'one' | 'all';
  /** The database in which shards find the dictionaries of names. */
  readonly database: string;
  /** What tells whether a shard that is down matters; absent where nobody asks. */
  readonly cluster?: {
    readonly shards: number;
    /** SQL for the number, from 1, of the shard that an account on one shard is on, by the parameter `account`. */
    readonly home: string;
  };
  /** Several nodes answer for a shard, and may differ for a moment. */
  readonly replicated?: boolean;
}

// The range of ClickHouse's Date. Any calendar date is a valid request, even one that no event can have.
export const everyDay: Days = { first: '1970-01-01', last: '2149-06-06' };

/** @param asked what is asked for beside the days, and the dimensions of the rollup that can answer it */
export function planReport(
  catalog: Catalog,
  breakdown: Breakdown,
  account: string,
  range: DateRange,
  routing?: ShardRouting,
  asked: Pick<Plan, 'options' | 'reads' | 'currency'> = { options: {}, reads: breakdown.dimensions },
): Plan {
  const { options, reads, currency } = asked;
  const { compare_to } = options;
  return {
    catalog,
    breakdown,
    family: familyOf(catalog, breakdown.family),
    account,
    range,
    days: daysOf(range),
    options,
    reads,
    currency,
    compared: compare_to && {
      days: daysOf(compare_to),
      later: daysBetween(compare_to.start, range.start),
    },
    routing,
  };
}

/** The same plan of what is on all shards: events lie with their advertiser, and the ledger is spread over them. */
export const onAllShards = ({ routing, ...plan }: Plan): Plan => ({
  ...plan,
  routing: routing && { ...routing, shards: 'all' },
});

function daysOf({ start, end }: DateRange): Days {
  const { first, last } = everyDay;
  if (end < first || start > last) return { first: last, last: first };
  return { first: start < first ? first : start, last: end > last ? last : end };
}
