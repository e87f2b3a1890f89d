import { monthName, monthOf, monthsWithin } from '../../clickhouse/months.ts';
import type { Reader, ReadStatement } from '../../clickhouse/reader.ts';
import { readSettings } from './compile.ts';
import { onAllShards, type Plan } from './plan.ts';

/** A report as of a close asks for a month that is not closed, or not in this revision. */
export class MonthNotClosed extends Error {}

interface Close {
  readonly month: number;
  readonly revision: string;
  /** Microseconds since 1970. */
  readonly closed_at: string;
}

/** The current revisions of an account's months in two ranges, or the months of one revision. */
const query = [
  'SELECT month, argMax(c.revision, c.closed_at) AS revision, toString(toUnixTimestamp64Micro(max(c.closed_at))) AS closed_at',
  'FROM closes AS c',
  'WHERE account_id = {account:String} AND (month BETWEEN {first:UInt32} AND {last:UInt32}',
  'OR month BETWEEN {compared_first:UInt32} AND {compared_last:UInt32})',
  "AND ({revision:String} = 'closed' OR c.revision = {revision:String}) GROUP BY month",
].join('\n');

/**
 * The same plan of the rows as they were closed, or of what changed since, if it asks for them.
 * @throws {MonthNotClosed} naming the first month that is not closed
 */
export async function asOfClose(reader: Reader, plan: Plan): Promise<Plan> {
  if (plan.options.as_of === undefined) return plan;
  const closes = await closesOf(reader, plan);
  const revisions = closes.map(({ revision }) => revision).sort();
  const { adjustments, by_load } = plan.options;
  if (!adjustments) return closedPlan(plan, revisions);
  if (!by_load) return { ...plan, adjusted: revisions };
  const closedAt = `{${closes.map(({ month, closed_at }) => `${month}:${closed_at}`).join()}}`;
  return { ...onAllShards(plan), adjusted: revisions, closedAt };
}

/** The same plan of the rows of revisions, which have every dimension. */
export function closedPlan(plan: Plan, closed: readonly string[]): Plan {
  return { ...plan, closed, reads: plan.family.dimensions };
}

/** The statement that lists what a plan asks for: the months that are closed, each with its revision. */
export function closedRevisions(plan: Plan): ReadStatement {
  const { account, range, options } = plan;
  const compared = options.compare_to ?? range;
  const params = {
    account,
    revision: options.as_of ?? '',
    first: `${monthOf(range.start)}`,
    last: `${monthOf(range.end)}`,
    compared_first: `${monthOf(compared.start)}`,
    compared_last: `${monthOf(compared.end)}`,
  };
  return { query, params, settings: { max_threads: 1, priority: 1, ...readSettings(plan) } };
}

async function closesOf(reader: Reader, plan: Plan): Promise<readonly Close[]> {
  const { range, options } = plan;
  const found = await reader.rows<Close>(closedRevisions(plan));
  const closed = new Set(found.map(({ month }) => month));
  const asked = [range, options.compare_to ?? range].map(({ start, end }) => ({ from: start, to: end }));
  const open = monthsWithin(asked).find((month) => !closed.has(month));
  if (open !== undefined) throw new MonthNotClosed(describe(open, options.as_of));
  return found;
}

function describe(month: number, asOf = 'closed'): string {
  const name = monthName(month);
  return asOf === 'closed'
    ? `${name} is not closed`
    : `this revision does not have ${name}, or is not of this account`;
}
