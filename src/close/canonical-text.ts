import { createHash } from 'node:crypto';
import type { Catalog } from '../../catalog/catalog.ts';
import { monthName } from '../../clickhouse/months.ts';
import type { Reader, ReadStatement } from '../../clickhouse/reader.ts';
import { closedBreakdown } from '../report/adjustments.ts';
import { closedPlan } from '../report/closed-months.ts';
import { expression } from '../report/column-sql.ts';
import { rowColumns } from '../report/columns.ts';
import { compileUnconfirmedDates, readSettings } from '../report/compile.ts';
import { groupingKeys, rowsSource, sourceParameters } from '../report/from-clause.ts';
import { type Plan, planReport, type ShardRouting } from '../report/plan.ts';
import { daysOfMonth, type Month } from './month.ts';

/** A month of an account, as it is today or as it was closed. */
export interface AccountMonth {
  readonly account: string;
  readonly month: Month;
  /** Absent: as it is today. */
  readonly revision?: string;
  readonly routing?: ShardRouting | undefined;
}

/** A day of a family whose money is unconfirmed. */
export interface UnconfirmedDay {
  readonly family: string;
  readonly day: string;
}

/** The report that has every row of a family in a month, with ids. */
export function finestPlan(
  catalog: Catalog,
  family: string,
  { account, month, revision, routing }: AccountMonth,
): Plan {
  const breakdown = closedBreakdown(catalog, family);
  const plan = planReport(catalog, breakdown, account, daysOfMonth(month), routing, {
    options: { ids: true },
    reads: breakdown.dimensions,
  });
  return revision === undefined ? plan : closedPlan(plan, [revision]);
}

/**
 * The text that a revision is the digest of: a line that says whose month it is and which days were unconfirmed, then a line
 * for each row of each family, ordered by family, day and ids. Members come in one order, amounts are decimal text, and what
 * is 0 or empty is left out, so that a measure that comes later changes no older digest. The engine writes the lines.
 */
export async function* canonicalText(
  reader: Reader,
  catalog: Catalog,
  which: AccountMonth,
  unconfirmed: readonly UnconfirmedDay[],
): AsyncGenerator<Uint8Array> {
  const { account, month } = which;
  const of = (family: string) => unconfirmed.filter((each) => each.family === family).map(({ day }) => day);
  const days = Object.keys(catalog.families).flatMap((family) =>
    of(family).length > 0 ? [[family, of(family)] as const] : [],
  );
  const head = {
    account_id: account,
    month: monthName(month),
    ...(days.length > 0 && { unconfirmed: Object.fromEntries(days) }),
  };
  yield Buffer.from(`${JSON.stringify(head)}\n`);
  for (const family of Object.keys(catalog.families)) {
    yield* await reader.stream(linesOf(finestPlan(catalog, family, which)));
  }
}

/** The digest of a text: the name of its revision. */
export async function digestOf(text: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of text) hash.update(bytes);
  return hash.digest('hex');
}

/** The days of the month that are unconfirmed today. */
export async function unconfirmedDays(
  reader: Reader,
  catalog: Catalog,
  which: AccountMonth,
): Promise<UnconfirmedDay[]> {
  const found: UnconfirmedDay[] = [];
  for (const family of Object.keys(catalog.families)) {
    const statement = compileUnconfirmedDates(finestPlan(catalog, family, which));
    const days = await reader.rows<{ day: string }>(statement);
    found.push(...days.map(({ day }) => ({ family, day })));
  }
  return found;
}

/** The texts and amounts of a row beside its day, in the order of a line; `value` is SQL. */
export function valuesOf(plan: Plan): { name: string; value: string; isAmount: boolean }[] {
  const texts = rowColumns(plan.catalog, plan.breakdown, plan.options)
    .filter((column) => column.source.kind === 'dimension')
    .map((column) => ({ name: column.id, value: expression(column, plan), isAmount: false }));
  const amounts = Object.keys(plan.family.measures).map((name) => ({
    name,
    value: name,
    isAmount: true,
  }));
  return [...texts, ...amounts];
}

function linesOf(plan: Plan): ReadStatement {
  const members = valuesOf(plan).map(({ name, value, isAmount }) =>
    isAmount
      ? `if(${value} = 0, '', concat(',"${name}":"', toString(${value}), '"'))`
      : `if(${value} = '', '', concat(',"${name}":', toJSONString(${value})))`,
  );
  const line = [`'{"family":"${plan.breakdown.family}","day":"'`, 'toString(day)', `'"'`, ...members, `'}'`];
  return {
    query: [
      `SELECT concat(${line.join(', ')}) AS line FROM ${rowsSource(plan)}`,
      `ORDER BY ${groupingKeys(plan).join(', ')} FORMAT TSVRaw`,
    ].join('\n'),
    params: sourceParameters(plan),
    settings: {
      ...readSettings(plan),
      output_format_json_escape_forward_slashes: 0,
      output_format_decimal_trailing_zeros: 0,
      optimize_aggregation_in_order: 1,
    },
  };
}
