import { closedTable, rollupTable } from '../../catalog/breakdowns.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { changesByLoad, unknownLoad } from './by-load.ts';
import { dayKey, filtered } from './column-sql.ts';
import { groupingDimensions, loadColumns, measuresOf, type RowColumn, rowColumns } from './columns.ts';
import { dayChanged } from './day-changed.ts';
import { comparedId, filterFields } from './fields.ts';
import type { Order } from './options.ts';
import { type DaysRead, dayParameters, ofCompared, ofRange, owned, ownedOn } from './owned.ts';
import type { Plan } from './plan.ts';
import { rowsOfThen } from './rows-of-then.ts';

/** What tells the rows of a report apart, in their order: the day, where there is one, then the dimensions. */
export function groupingKeys(plan: Plan): string[] {
  const keys = groupingDimensions(plan.catalog, plan.breakdown).map(({ key }) => key);
  const loads = plan.closedAt !== undefined ? loadColumns : [];
  return plan.breakdown.day ? [dayKey(plan), ...keys, ...loads] : keys;
}

/** Whether the rows are those of one table, as they are of a moment after which no day changed. */
const isTable = ({ adjusted, past }: Plan): boolean => !adjusted && !past?.changed.length;

/**
 * Whether the rows are those of the rollup, in its order. FINAL merges only within a shard: rows from several shards
 * are grouped.
 */
export function readInOrder(plan: Plan): boolean {
  const { breakdown, routing, options, reads } = plan;
  const own = breakdown.day && reads.length === breakdown.dimensions.length && isTable(plan);
  return own && !options.time_grain && !options.compare_to && routing?.shards !== 'all';
}

/**
 * One row for each combination of the keys, with the sums that the report needs. A dated breakdown has the keys of its
 * rollup: its rows only need the merge that ClickHouse would do anyway, in the order of the sort key, which takes half
 * the CPU of a GROUP BY and streams from the first row on.
 */
export function rowsSource(plan: Plan): string {
  const keys = groupingKeys(plan);
  // The keys of a row are those of all its parts, so what is left out need not be merged: a tenth of the CPU for one
  // campaign of 30, where WHERE takes a quarter, and half of it for 365 days of a small account.
  if (readInOrder(plan)) return `${tableOf(plan)} FINAL PREWHERE ${read(plan, ofRange)}`;
  return `(${plan.closedAt !== undefined ? changedKeys(plan, keys) : grouped(plan, keys)})`;
}

/** Keys whose parts cancel out are left out. */
function changedKeys(plan: Plan, keys: readonly string[]): string {
  const own = keys.filter((key) => !loadColumns.some((column) => column === key));
  const sums = measuresRead(plan).map((name) => `sum(g.${name}) OVER (PARTITION BY ${own.join(', ')}) != 0`);
  return `SELECT * FROM (${grouped(plan, keys)}) AS g QUALIFY ${sums.join(' OR ')}`;
}

/** One row with the sums of them all. Loads cancel out in it, so they are not read. */
export function sumsOfAll({ closedAt: _, ...plan }: Plan): string {
  return `(${grouped(plan, [])})`;
}

/** The sums that the columns of a report, and what orders its rows, are computed from. */
export function sumsRead(plan: Plan): string[] {
  const measures = measuresRead(plan);
  return plan.compared ? [...measures, ...measures.map(comparedId)] : measures;
}

function measuresRead(plan: Plan): string[] {
  const columns = rowColumns(plan.catalog, plan.breakdown, plan.options);
  const ordering = orderedBy(plan).map(({ column }) => column);
  const read = new Set([...columns, ...ordering].flatMap(measuresOf));
  return Object.keys(plan.family.measures).filter((name) => read.has(name) || read.has(comparedId(name)));
}

/** What orders the rows before the grouping keys do; of an undated report all rows have the same range. */
export function orderedBy({
  catalog,
  breakdown,
  options: { metrics: _, ...others },
}: Plan): { column: RowColumn; direction: Order['direction'] }[] {
  const columns = rowColumns(catalog, breakdown, { ...others, ids: true }).filter(
    ({ source }) => breakdown.day || source.kind !== 'range',
  );
  return (others.order_by ?? []).flatMap(({ field, direction }) =>
    columns.filter(({ id }) => id === field).map((column) => ({ column, direction })),
  );
}

function grouped(plan: Plan, keys: readonly string[]): string {
  if (plan.compared) return groupedSides(plan, keys);
  const names = namesRead(plan, keys);
  const measures = measuresRead(plan);
  const values = [
    ...keys.map((key) => keyValue(key, plan)),
    ...names.map((name) => `tupleElement(${lastName(name)}, 2) AS ${name}`),
    ...measures.map((name) => `sum(r.${name}) AS ${name}`),
  ];
  const isChanged = measures.map((name) => `${name} != 0`).join(' OR ');
  const having = plan.adjusted && keys.length > 0 ? ` HAVING ${isChanged}` : '';
  return `${select(plan, ofRange, values)}${by(keys)}${having}`;
}

/** The days of the range and those that they are compared with: each side has sums of its own. */
function groupedSides(plan: Plan, keys: readonly string[]): string {
  const measures = measuresRead(plan);
  const names = namesRead(plan, keys);
  const sum = (name: string, as: string) => `sum(r.${name}) AS ${as}`;
  const side = (days: DaysRead, later: string, value: (name: string, before: boolean) => string) => {
    const values = [false, true].flatMap((before) => measures.map((name) => value(name, before)));
    const selected = [
      ...keys.map((key) => keyValue(key, plan, later)),
      ...names.map((name) => `${lastName(name)} AS ${name}`),
      ...values,
    ];
    return `${select(plan, days, selected)}${by(keys)}`;
  };
  const sides = [
    side(ofRange, '', (name, before) => (before ? `0 AS ${comparedId(name)}` : sum(name, name))),
    side(ofCompared, ' + {later:Int32}', (name, before) =>
      before ? sum(name, comparedId(name)) : `0 AS ${name}`,
    ),
  ];
  const added = [
    ...names.map((name) => `tupleElement(max(s.${name}), 2) AS ${name}`),
    ...sumsRead(plan).map((name) => `sum(s.${name}) AS ${name}`),
  ];
  return `SELECT ${[...keys, ...added].join(', ')} FROM (${sides.join('\nUNION ALL\n')}) AS s${by(keys)}`;
}

function select(plan: Plan, days: DaysRead, values: readonly string[]): string {
  // The index has found the rows: to read the other columns in a second step takes a fifth of the CPU of 365 days of a
  // small account. It pays off where filters leave out most of them.
  const { filters, changed_since } = plan.options;
  const clause = (filters || changed_since !== undefined) && isTable(plan) ? 'PREWHERE' : 'WHERE';
  return `SELECT ${values.join(', ')} FROM ${tableOf(plan, days)}${plan.closed ? ' FINAL' : ''} ${clause} ${read(plan, days)}`;
}

const by = (keys: readonly string[]) => (keys.length > 0 ? ` GROUP BY ${keys.join(', ')}` : '');

const keyValue = (key: string, plan: Plan, later = '') => (key === 'period' ? period(plan, later) : key);

/** What a row covers; a day that is compared stands where the day of the range is that it is compared to. */
function period({ options: { time_grain } }: Plan, later: string): string {
  const day = `day${later}`;
  if (!time_grain) return `${day} AS period`;
  return `${time_grain === 'week' ? 'toMonday' : 'toStartOfMonth'}(${day}) AS period`;
}

function tableOf(plan: Plan, days = ofRange): string {
  const { breakdown, reads, closed, adjusted, past } = plan;
  if (past && past.changed.length > 0) return `(${rowsOfThen(plan, days)}) AS r`;
  if (adjusted) return `(${changesSinceClose(plan)}) AS r`;
  if (closed) return `${closedTable(breakdown.family)} AS r`;
  return `${rollupTable(breakdown.family, reads)} AS r`;
}

/** The rows of today, and with the other sign those that were closed. */
function changesSinceClose(plan: Plan): string {
  const { catalog, breakdown, reads, closedAt } = plan;
  const { measures } = plan.family;
  const own = groupingDimensions(catalog, breakdown).map(({ key }) => key);
  const keys = ['account_id', 'day', ...own, ...(closedAt !== undefined ? [unknownLoad] : [])];
  const signed = (sign: string) =>
    Object.entries(measures).map(([name, { type }]) =>
      type === 'Money' ? `${sign}t.${name} AS ${name}` : `${sign}toInt128(t.${name}) AS ${name}`,
    );
  return [
    `SELECT ${[...keys, ...signed('')].join(', ')} FROM ${rollupTable(breakdown.family, reads)} AS t WHERE ${owned}`,
    `SELECT ${[...keys, ...signed('-')].join(', ')} FROM ${closedTable(breakdown.family)} AS t FINAL WHERE ${owned} AND ${inRevisions}`,
    ...(closedAt !== undefined ? [changesByLoad(plan)] : []),
  ].join('\nUNION ALL\n');
}

/** The columns of closed rows that have the names of then; names of today are looked up in dictionaries. */
function namesRead({ catalog, breakdown, closed }: Plan, keys: readonly string[]): string[] {
  if (!closed || keys.length === 0) return [];
  return groupingDimensions(catalog, breakdown).flatMap(({ columns }) =>
    columns.filter(({ name }) => name).map(({ id }) => id),
  );
}

/** With its day: of several closes the name of the last one is shown. */
const lastName = (name: string) => `max((r.day, r.${name}))`;

/** What is read: some days of the owner, and of these what the filters let through; their values are parameters. */
function read(plan: Plan, days: DaysRead): string {
  const { changed_since } = plan.options;
  const changed = changed_since === undefined ? [] : [dayChanged(plan.breakdown.family)];
  const ofThen = plan.closed ? [inRevisions] : [];
  return [ownedOn(days), ...ofThen, ...changed, ...filterConditions(plan)].join(' AND ');
}

/** Which closed rows are read; the revisions are a parameter. */
export const inRevisions = 'revision IN {revisions:Array(String)}';

/** What the filters let through; their values are parameters. */
export function filterConditions(plan: Plan): string[] {
  const { filters } = plan.options;
  if (!filters) return [];
  return filterFields(plan.catalog, plan.breakdown.family)
    .filter(({ id }) => filters[id])
    .map((field) => `${filtered(field, plan)} IN {filter_${field.id}:Array(String)}`);
}

/** The values of the parameters above. */
export function sourceParameters(plan: Plan): ReadStatement['params'] {
  const { breakdown, options, compared, closedAt, closed, adjusted } = plan;
  const revisions = closed ?? adjusted;
  const filters = Object.entries(options.filters ?? {}).map(([id, values]) => [`filter_${id}`, values]);
  return {
    ...dayParameters(plan),
    ...(revisions && { revisions }),
    ...momentParameters(plan),
    ...(closedAt !== undefined && { closed_at: closedAt }),
    ...Object.fromEntries(filters),
    ...(options.changed_since !== undefined && { changed_since: options.changed_since }),
    ...(compared && breakdown.day && { later: `${compared.later}` }),
  };
}

export function momentParameters({
  options: { moment },
  past,
}: Plan): Record<string, string | readonly string[]> {
  return { ...(moment !== undefined && { moment }), ...(past && { changed_days: past.changed }) };
}
