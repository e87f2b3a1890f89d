import { familyOf, rollupTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { groupingDimensions, rowColumns } from './columns.ts';
import { type ReportFormatName, reportFormats } from './formats.ts';
import type { Plan } from './plan.ts';
import { type Envelope, templateOf } from './template.ts';
import { named } from './values.ts';

// The owner and the days of the range: every statement of a report reads through this one condition, before anything
// else. ClickHouse does not move it there by itself where it reads FINAL: 365 days of a small account took a fifth more CPU.
export const owned = 'account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}';

/**
 * The statement whose answer is the whole response body, in JSON with the envelope (contract §2.2), rows ordered
 * by the grouping keys, day first. Pure: the same plan gives the same text.
 * @param envelope absent: the body is what lies between the head and the end of the envelope
 */
export function compileReport(
  catalog: Catalog,
  plan: Plan,
  envelope: Envelope | undefined,
  format: ReportFormatName = 'json',
): ReadStatement {
  const { breakdown } = plan;
  const { clickhouse, settings } = reportFormats[format];
  const columns = rowColumns(catalog, breakdown);
  const keys = [
    ...(breakdown.day ? ['day'] : []),
    ...groupingDimensions(catalog, breakdown).map(({ key }) => key),
  ];
  const template = clickhouse === 'Template' ? templateOf(columns, plan, envelope) : undefined;
  const query = [
    `SELECT ${template?.selected ?? columns.map((column) => named(column, plan)).join(', ')}`,
    `FROM ${source(catalog, plan, keys)}`,
    `ORDER BY ${keys.join(', ')}`,
    `FORMAT ${clickhouse}`,
  ].join('\n');
  const { start, end } = plan.range;
  return {
    query,
    params: { ...parameters(plan), ...(!template && !breakdown.day && { start, end }) },
    settings: {
      ...(readInOrder(plan) && inOrder),
      ...readSettings(plan),
      ...settings,
      ...template?.settings,
    },
  };
}

/**
 * How a dated report is read: texts and ratios are computed by all threads before the streams of the months come
 * together, in blocks small enough that the first bytes leave early: the first block of each month goes before them.
 */
const inOrder = {
  query_plan_execute_functions_after_sorting: 0,
  read_in_order_use_buffering: 0,
  max_block_size: 4_096,
};

/**
 * One row for each combination of the keys. A dated breakdown has the keys of its rollup: its rows only need the
 * merge that ClickHouse would do anyway, in the order of the sort key, which takes half the CPU of a GROUP BY and
 * streams from the first row on.
 */
function source(catalog: Catalog, plan: Plan, keys: readonly string[]): string {
  const { breakdown } = plan;
  const table = `${rollupTable(breakdown.family, breakdown.dimensions)} AS r`;
  if (readInOrder(plan)) return `${table} FINAL PREWHERE ${owned}`;
  const sums = Object.keys(familyOf(catalog, breakdown.family).measures).map(
    (name) => `sum(r.${name}) AS ${name}`,
  );
  return `(SELECT ${[...keys, ...sums].join(', ')} FROM ${table} PREWHERE ${owned} GROUP BY ${keys.join(', ')})`;
}

/** FINAL merges only within a shard: rows from several shards are grouped. */
function readInOrder({ breakdown, routing }: Plan): boolean {
  return breakdown.day && routing?.shards !== 'all';
}

/** The settings of every statement of a report; `more` tables are read beside those of reports. */
export function readSettings(plan: Plan, more: readonly string[] = []): Record<string, number | string> {
  return { ...shardSettings(plan), additional_table_filters: ownRowsOnly(plan, more) };
}

/**
 * A second line behind `owned`: ClickHouse adds it to each table that a report may read, whatever the text of the
 * statement says. The account is in hex, so that no id can end the literal. It takes no CPU that could be measured.
 */
function ownRowsOnly({ breakdown, account }: Plan, more: readonly string[]): string {
  const owner = `account_id = unhex(\\'${Buffer.from(account).toString('hex')}\\')`;
  const tables = [breakdown.dimensions, []].map((dimensions) => rollupTable(breakdown.family, dimensions));
  return `{${[...new Set([...tables, 'confirmations', ...more])].map((table) => `'${table}':'${owner}'`).join()}}`;
}

/** A report of one shard fails rather than read more, and no report skips a shard that is down. */
function shardSettings({ routing }: Plan): Record<string, number> {
  if (!routing) return {};
  const one = routing.shards === 'one' ? 1 : 0;
  return {
    skip_unavailable_shards: 0,
    optimize_skip_unused_shards: one,
    force_optimize_skip_unused_shards: one,
    // The sharding key reads the dictionary of placements, which changes only as docs/scaling.md describes.
    allow_nondeterministic_optimize_skip_unused_shards: one,
  };
}

/** The statement that lists the unconfirmed days of the range, ascending, one column `day`. */
export function compileUnconfirmedDates(plan: Plan): ReadStatement {
  const query = [
    'SELECT day FROM (',
    'SELECT day, r.unconfirmed_at AS unconfirmed_at, toDateTime64(0, 6) AS confirmed_at',
    `FROM ${rollupTable(plan.breakdown.family, [])} AS r PREWHERE ${owned}`,
    'UNION ALL',
    'SELECT day, toDateTime64(0, 6) AS unconfirmed_at, c.confirmed_at AS confirmed_at',
    `FROM confirmations AS c PREWHERE ${owned})`,
    'GROUP BY day HAVING max(unconfirmed_at) > max(confirmed_at) ORDER BY day',
  ].join('\n');
  // It reads too little for a second thread to pay off.
  return { query, params: parameters(plan), settings: { max_threads: 1, ...readSettings(plan) } };
}

export function parameters({ account, days }: Plan): Record<string, string> {
  return { account, first: days.first, last: days.last };
}
