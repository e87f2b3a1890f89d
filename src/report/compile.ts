import { changesTable, closedTable, rollupTable } from '../../catalog/breakdowns.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { tablesByLoad } from './by-load.ts';
import { dayKey, expression, named } from './column-sql.ts';
import { isFigure, rowColumns } from './columns.ts';
import { daysBetween } from './days.ts';
import { type ReportFormat, type ReportFormatName, reportFormats } from './formats.ts';
import {
  groupingKeys,
  inRevisions,
  momentParameters,
  orderedBy,
  readInOrder,
  rowsSource,
  sourceParameters,
  sumsOfAll,
  sumsRead,
} from './from-clause.ts';
import { dayParameters, owned } from './owned.ts';
import type { Plan, ShardRouting } from './plan.ts';
import { tablesOfThen, unconfirmedThen } from './rows-of-then.ts';
import { sheetDay, sheetOf } from './sheet.ts';
import { type Envelope, type Template, templateOf } from './template.ts';

// The last day of ClickHouse's Date32, which a month that begins on the last days of its Date ends before.
const lastDate32 = '2299-12-31';

const templates: {
  readonly [Format in ReportFormatName]?: (...of: Parameters<typeof templateOf>) => Template;
} = { json: templateOf, xlsx: sheetOf };

/**
 * The statement whose answer is the whole response body, in JSON with the envelope, rows ordered
 * by the grouping keys, day first, or as asked for. Pure: the same plan gives the same text.
 * @param envelope absent: the body is what lies between the head and the end of the envelope
 */
export function compileReport(
  plan: Plan,
  envelope: Envelope | undefined,
  format: ReportFormatName = 'json',
): ReadStatement {
  const { catalog, breakdown, options } = plan;
  const { clickhouse, settings, countType }: ReportFormat = reportFormats[format];
  const columns = rowColumns(catalog, breakdown, options);
  const template = templates[format]?.(columns, plan, envelope);
  const rows = [
    `SELECT ${template?.selected ?? columns.map((column) => named(column, plan, countType)).join(', ')}`,
    `FROM ${rowsSource(plan)}`,
    `ORDER BY ${order(plan)}`,
    ...(options.limit === undefined ? [] : ['LIMIT {limit:UInt32}']),
  ].join('\n');
  const query = template && options.totals ? `(${rows})\nUNION ALL\n${totalsOf(plan, template)}` : rows;
  return {
    query: `${query}\nFORMAT ${clickhouse}`,
    params: { ...sourceParameters(plan), ...rowParameters(plan, format) },
    settings: { ...readingSettings(plan), ...readSettings(plan), ...settings, ...template?.settings },
  };
}

function order(plan: Plan): string {
  const asked = orderedBy(plan).map(({ column, direction }) => ({
    value: column.source.kind === 'range' ? dayKey(plan) : expression(column, plan),
    descending: direction === 'desc' ? ' DESC' : '',
  }));
  const keys = groupingKeys(plan).filter((key) => !asked.some(({ value }) => value === key));
  return [...asked.map(({ value, descending }) => `${value}${descending}`), ...keys].join(', ');
}

/**
 * Adds no row, only what ClickHouse has as the totals of an answer: the sums of all rows, also of those that the limit
 * leaves out. It reads the same parts as the rows, because they are one statement, and takes a twentieth of their CPU;
 * a GROUP BY of the rows WITH TOTALS takes as much as they do.
 */
function totalsOf(plan: Plan, template: Template): string {
  const sums = sumsRead(plan).map((name) => `sum(t.${name}) AS ${name}`);
  return [
    `SELECT ${template.totals}`,
    `FROM (SELECT ${sums.join(', ')} FROM ${sumsOfAll(plan)} AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)`,
    // Of these rows none is counted: without it those that other shards send for the totals would be.
    ...(plan.options.limit === undefined ? [] : ['LIMIT {limit:UInt32}']),
  ].join('\n');
}

/**
 * The statement whose one row says of a report how many rows there would be without a limit, as `row_count`, and its
 * totals, all as text. For the formats that cannot say it themselves.
 */
export function compileSummary(plan: Plan): ReadStatement {
  const figures = rowColumns(plan.catalog, plan.breakdown, plan.options).filter(isFigure);
  const texts = figures.map((column) => `toString(${expression(column, plan)}) AS total_${column.id}`);
  const sums = sumsRead(plan).map((name) => `sum(r.${name}) AS ${name}`);
  const query = [
    `SELECT ${['toString(row_count) AS row_count', ...texts].join(', ')}`,
    `FROM (SELECT ${['count() AS row_count', ...sums].join(', ')}`,
    `FROM ${rowsSource(plan)}${readInOrder(plan) ? '' : ' AS r'})`,
  ].join('\n');
  return { query, params: sourceParameters(plan), settings: readSettings(plan) };
}

/** The values of the parameters that are not those of what is read. */
function rowParameters(plan: Plan, format: ReportFormatName): Record<string, string> {
  const { breakdown, options, range } = plan;
  const says = !breakdown.day && (format !== 'json' || options.totals);
  const { countType }: ReportFormat = reportFormats[format];
  const typed = (day: string) => (countType ? `${daysBetween('1970-01-01', day)}` : day);
  const written = format === 'xlsx' ? sheetDay : typed;
  return {
    ...(says && { start: written(range.start), end: written(range.end) }),
    ...(options.time_grain && { until: range.end < lastDate32 ? range.end : lastDate32 }),
    ...(options.limit !== undefined && { limit: `${options.limit}` }),
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

/** Reading in order stops at the limit, and then nobody has counted the rows. Names are looked up for those that are left. */
const counted = { optimize_read_in_order: 0, exact_rows_before_limit: 1 };

function readingSettings(plan: Plan): Record<string, number | string> {
  const { limit, order_by, totals } = plan.options;
  return {
    ...(limit !== undefined && counted),
    ...(limit === undefined && !order_by && readInOrder(plan) && inOrder),
    ...(totals && { totals_mode: 'before_having' }),
  };
}

/**
 * The settings of every statement of a report.
 * @param more tables that are read beside those of reports, each with the column that holds the account
 */
export function readSettings(
  plan: Plan,
  more: Readonly<Record<string, string>> = {},
): Record<string, number | string> {
  return ownSettings(plan, { ...ownersOf(plan), ...more });
}

/**
 * The settings of every statement that reads rows of an account.
 * @param owners the tables that it reads, each with the column that holds the account
 */
export function ownSettings(
  { account, routing }: { readonly account: string; readonly routing?: ShardRouting | undefined },
  owners: Readonly<Record<string, string>>,
): Record<string, number | string> {
  return {
    ...shardSettings(routing),
    additional_table_filters: ownRowsOnly(account, owners),
    // Statements say PREWHERE where it pays off, and no table has a projection: to look for one takes a twentieth of the
    // CPU of a small report.
    optimize_move_to_prewhere: 0,
    optimize_use_projections: 0,
  };
}

/**
 * A second line behind `owned`: ClickHouse adds it to each table that a report may read, whatever the text of the
 * statement says. The account is in hex, so that no id can end the literal. It takes half a millisecond.
 */
function ownRowsOnly(account: string, owners: Readonly<Record<string, string>>): string {
  const literal = `unhex(\\'${Buffer.from(account).toString('hex')}\\')`;
  return `{${Object.entries(owners)
    .map(([table, owner]) => `'${table}':'${owner} = ${literal}'`)
    .join()}}`;
}

/** The tables that a report may read, each with the column that holds the account. */
export function ownersOf(plan: Plan): Record<string, string> {
  const { reads, options, closed, adjusted, past, closedAt } = plan;
  const { family } = plan.breakdown;
  const { owner } = plan.family;
  const today = [...[reads, []].map((dimensions) => rollupTable(family, dimensions)), 'confirmations'];
  const ofThen = closed || adjusted || options.as_of !== undefined ? [closedTable(family), 'closes'] : [];
  const tables = [...(closed ? [] : today), ...ofThen];
  const changes = options.changed_since === undefined ? [] : [changesTable(family)];
  return {
    ...Object.fromEntries([...tables, ...changes].map((table) => [table, 'account_id'])),
    ...(past && tablesOfThen(owner)),
    ...(closedAt !== undefined && tablesByLoad(owner, changesTable(family))),
  };
}

/** A report of one shard fails rather than read more, and no report skips a shard that is down. */
function shardSettings(routing: ShardRouting | undefined): Record<string, number> {
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
  const { family } = plan.breakdown;
  const params = dayParameters({ ...plan, compared: undefined });
  // Without events it reads too little for a second thread to pay off.
  const settings = { max_threads: 1, ...readSettings(plan) };
  if (plan.closed) {
    const query = [
      'SELECT DISTINCT day FROM (',
      'SELECT account_id, revision, u.1 AS family, u.2 AS day FROM closes ARRAY JOIN unconfirmed AS u)',
      `WHERE ${owned} AND ${inRevisions} AND family = '${family}' ORDER BY day`,
    ].join('\n');
    return { query, params: { ...params, revisions: plan.closed }, settings };
  }
  const grouped = 'GROUP BY day HAVING max(unconfirmed_at) > max(confirmed_at) ORDER BY day';
  if (plan.past) {
    return {
      query: `SELECT day FROM (\n${unconfirmedThen(plan, plan.past)})\n${grouped}`,
      params: { ...params, ...momentParameters(plan) },
      settings: readSettings(plan),
    };
  }
  const query = [
    'SELECT day FROM (',
    'SELECT day, r.unconfirmed_at AS unconfirmed_at, toDateTime64(0, 6) AS confirmed_at',
    `FROM ${rollupTable(family, [])} AS r WHERE ${owned}`,
    'UNION ALL',
    'SELECT day, toDateTime64(0, 6) AS unconfirmed_at, c.confirmed_at AS confirmed_at',
    `FROM confirmations AS c WHERE ${owned})`,
    grouped,
  ].join('\n');
  return { query, params, settings };
}
