import type { ReadStatement } from '../../clickhouse/reader.ts';
import { familyOf, rollupTable } from '../breakdowns.ts';
import type { Catalog } from '../catalog.ts';
import { groupingDimensions, type RowColumn, rowColumns } from './columns.ts';
import { type ReportFormatName, reportFormats } from './formats.ts';
import type { AskedShards, Plan } from './plan.ts';

/** What the envelope says beside the rows. */
export interface Envelope {
  /** `yyyy-mm-dd hh:mm:ss TZ` */
  readonly lastUpdateTime: string;
  /** `yyyy-mm-dd`, ascending */
  readonly unconfirmedDates: readonly string[];
}

// The owner and the days of the range: every statement of a report reads through this one condition.
const owned = 'account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}';

/**
 * The statement whose answer is the whole response body, in JSON with the envelope (contract §2.2), rows ordered
 * by the grouping keys, day first. Pure: the same plan gives the same text.
 */
export function compileReport(
  catalog: Catalog,
  plan: Plan,
  envelope: Envelope,
  format: ReportFormatName = 'json',
): ReadStatement {
  const { breakdown } = plan;
  const { clickhouse, settings } = reportFormats[format];
  const template = clickhouse === 'Template';
  // Of an undated report the range is the same on every row: a template writes it as literal text.
  const constantRange = !breakdown.day && !template;
  const columns = rowColumns(catalog, breakdown);
  const keys = [
    ...(breakdown.day ? ['day'] : []),
    ...groupingDimensions(catalog, breakdown).map(({ key }) => key),
  ];
  const query = [
    `SELECT ${columns
      .filter(({ source }) => source.kind !== 'range' || breakdown.day || constantRange)
      .map((column) => expression(column, { template, constantRange, shards: plan.shards }))
      .join(', ')}`,
    `FROM ${source(catalog, plan, keys)}`,
    `ORDER BY ${keys.join(', ')}`,
    `FORMAT ${clickhouse}`,
  ].join('\n');
  return {
    query,
    params: { ...parameters(plan), ...(constantRange && { start: plan.range.start, end: plan.range.end }) },
    settings: {
      ...(readInOrder(plan) && inOrder),
      ...shardSettings(plan),
      ...settings,
      ...(template && {
        format_template_resultset_format: envelopeTemplate(columns, envelope),
        format_template_row_format: `{${columns.map((column) => field(column, plan)).join(',')}}`,
        format_template_rows_between_delimiter: ',',
      }),
    },
  };
}

/**
 * How a dated report is read: names and ratios are computed by all threads before the streams of the months come
 * together, in blocks small enough that the first bytes leave early.
 */
const inOrder = {
  query_plan_execute_functions_after_sorting: 0,
  read_in_order_use_buffering: 0,
  max_block_size: 16_384,
};

/**
 * One row for each combination of the keys. A dated breakdown has the keys of its rollup: its rows only need the
 * merge that the engine would do anyway, in the order of the sort key, which takes half the CPU of a GROUP BY and
 * streams from the first row on.
 */
function source(catalog: Catalog, plan: Plan, keys: readonly string[]): string {
  const { breakdown } = plan;
  const table = `${rollupTable(breakdown.family, breakdown.dimensions)} AS r`;
  if (readInOrder(plan)) return `${table} FINAL WHERE ${owned}`;
  const sums = Object.keys(familyOf(catalog, breakdown.family).measures).map(
    (name) => `sum(r.${name}) AS ${name}`,
  );
  return `(SELECT ${[...keys, ...sums].join(', ')} FROM ${table} WHERE ${owned} GROUP BY ${keys.join(', ')})`;
}

/** FINAL merges what lies on one shard: rows of several are grouped. */
function readInOrder({ breakdown, shards }: Plan): boolean {
  return breakdown.day && shards?.asked !== 'all';
}

/** A report that should ask one shard fails where it would ask more, and never does without one that is down. */
function shardSettings({ shards }: Plan): Record<string, number> {
  if (!shards) return {};
  const one = shards.asked === 'one' ? 1 : 0;
  return {
    skip_unavailable_shards: 0,
    optimize_skip_unused_shards: one,
    force_optimize_skip_unused_shards: one,
    // The sharding key asks the dictionary of placements, which changes only as docs/scaling.md describes.
    allow_nondeterministic_optimize_skip_unused_shards: one,
  };
}

/** The statement that lists the unconfirmed days of the range, ascending, one column `day`. */
export function compileUnconfirmedDates(plan: Plan): ReadStatement {
  const query = [
    'SELECT day FROM (',
    'SELECT day, r.unconfirmed_at AS unconfirmed_at, toDateTime64(0, 6) AS confirmed_at',
    `FROM ${rollupTable(plan.breakdown.family, [])} AS r WHERE ${owned}`,
    'UNION ALL',
    'SELECT day, toDateTime64(0, 6) AS unconfirmed_at, c.confirmed_at AS confirmed_at',
    `FROM confirmations AS c WHERE ${owned})`,
    'GROUP BY day HAVING max(unconfirmed_at) > max(confirmed_at) ORDER BY day',
  ].join('\n');
  // It reads so little that a second thread would only have to be started.
  return { query, params: parameters(plan), settings: { max_threads: 1, ...shardSettings(plan) } };
}

/** A report that reads no more rows of its rollup than this, and writes each, is small. */
const smallRows = 20_000;

/**
 * The statement that tells in a column `small` whether a report is done in a moment. Counted rather than
 * estimated: an estimate is whole granules of every part, 157,025 rows where a year of an account had 10,950.
 */
export function compileSmallness(plan: Plan): ReadStatement {
  const table = rollupTable(plan.breakdown.family, plan.breakdown.dimensions);
  const days = (Date.parse(plan.days.last) - Date.parse(plan.days.first)) / 86_400_000 + 1;
  // Rows that are only added up cost a fraction of those that are written.
  const most = plan.breakdown.day ? smallRows : smallRows * Math.min(5, Math.max(1, days));
  return {
    query: `SELECT count() <= ${most} AS small FROM (SELECT 1 FROM ${table} WHERE ${owned} LIMIT ${most + 1})`,
    params: parameters(plan),
    settings: { priority: 1, ...shardSettings(plan) },
  };
}

function parameters({ account, days }: Plan): Record<string, string> {
  return { account, first: days.first, last: days.last };
}

function expression(
  { id, source }: RowColumn,
  {
    template,
    constantRange,
    shards,
  }: { template: boolean; constantRange: boolean; shards: AskedShards | undefined },
): string {
  switch (source.kind) {
    case 'range':
      if (constantRange) return `{${id === 'start_time' ? 'start' : 'end'}:String} AS ${id}`;
      return template ? `day AS ${id}` : `toString(day) AS ${id}`;
    case 'dimension': {
      const { key } = source.dimension;
      const { name } = source.column;
      if (!name) return id === key ? key : `${key} AS ${id}`;
      const otherwise = name.otherwise === 'id' ? key : "''";
      const dictionary = shards ? `${shards.database}.${name.dictionary}` : name.dictionary;
      return `dictGetOrDefault('${dictionary}', '${name.attribute}', ({account:String}, ${key}), ${otherwise}) AS ${id}`;
    }
    case 'measure':
      return id;
    case 'ratio': {
      const { numerator, denominator, times } = source;
      const scaled = times === 1 ? numerator : `${times} * ${numerator}`;
      // Decimal division cuts off after the dividend's scale: 7 places, then rounding to 6, is exact.
      return `if(${denominator} = 0, toDecimal128(0, 6), CAST(round(toDecimal128(${scaled}, 7) / greatest(${denominator}, 1), 6), 'Decimal(38, 6)')) AS ${id}`;
    }
  }
}

/** A row field in the row template: text as JSON, days and numbers as the database prints them. */
function field({ id, type, source }: RowColumn, plan: Plan): string {
  if (source.kind === 'range' && !plan.breakdown.day) {
    return `"${id}":"${id === 'start_time' ? plan.range.start : plan.range.end}"`;
  }
  if (type === 'Date') return `"${id}":"\${${id}:Raw}"`;
  return `"${id}":\${${id}:${type === 'String' ? 'JSON' : 'Raw'}}`;
}

function envelopeTemplate(columns: RowColumn[], { lastUpdateTime, unconfirmedDates }: Envelope): string {
  const metadata = columns.map(({ id, type }) => ({ id, type }));
  return [
    `{"result":{"last_update_time":${literal(lastUpdateTime)},"rows":[`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of FORMAT Template
    '${data}',
    `],"column_metadata":${literal(metadata)},"unconfirmed_revenue_dates":${literal(unconfirmedDates)}}}`,
  ].join('');
}

/** JSON as literal text of a template, where `$` begins a placeholder. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll('$', '$$$$');
}
