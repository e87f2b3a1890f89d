import type { Dimension, NameSource } from '../../catalog/catalog.ts';
import { isCount, type RowColumn } from './columns.ts';
import type { FilterField } from './fields.ts';
import type { ReportFormat } from './formats.ts';
import type { Plan } from './plan.ts';
import { nameThen } from './rows-of-then.ts';

/**
 * A column of the rows as a SELECT has it, under its id. The statement fails where a count does not fit its type.
 * @param countType of a format with types, where days are dates; absent: days are text
 */
export function named(column: RowColumn, plan: Plan, countType?: ReportFormat['countType']): string {
  const value = countType ? typed(column, plan, countType) : expression(column, plan);
  return value === column.id ? value : `${value} AS ${column.id}`;
}

/** With the type that the format tells; to a text it makes no difference. */
function typed(column: RowColumn, plan: Plan, countType: string): string {
  if (column.source.kind === 'range') return dateOf(column.id, plan);
  const exact = expression(column, plan);
  if (isCount(column)) return `accurateCast(${exact}, '${countType}')`;
  return isRatio(column) ? `CAST(${exact}, 'Decimal(38, 6)')` : exact;
}

const isRatio = ({ source }: RowColumn): boolean =>
  source.kind === 'change' ? isRatio(source.now) : source.kind === 'ratio';

/** What a column is computed from, after the grouping. */
export function expression({ id, source }: RowColumn, plan: Plan): string {
  switch (source.kind) {
    case 'range':
      return plan.breakdown.day ? `toString(${covered(id, plan)})` : edgeOf(id);
    case 'dimension': {
      const { dimension, column } = source;
      if (!column.name) return dimension.key;
      if (plan.closed) return column.id;
      return lookUp(dimension, column.name, plan);
    }
    case 'measure':
    case 'load':
      return id;
    case 'ratio': {
      const { numerator, denominator, times } = source;
      const scaled = times === 1 ? numerator : `${times} * ${numerator}`;
      // Decimal division cuts off after the dividend's scale: 7 places, then rounding to 6, is exact.
      return `if(${denominator} = 0, toDecimal128(0, 7), round(toDecimal128(${scaled}, 7) / greatest(${denominator}, 1), 6))`;
    }
    case 'change':
      return `${expression(source.now, plan)} - ${expression(source.before, plan)}`;
  }
}

const edgeOf = (id: string) => `{${id === 'start_time' ? 'start' : 'end'}:String}`;

/** As a number of days since 1970, because ClickHouse reads no text as a Date32 before 1900 or after 2299. */
const dateOf = (id: string, plan: Plan) =>
  plan.breakdown.day
    ? `toDate32(${covered(id, plan)})`
    : `toDate32(0) + {${id === 'start_time' ? 'start' : 'end'}:Int32}`;

/** What a dated row is of: a day of the rollup, or one that is computed: the first one of a week or of a month. */
export function dayKey({ options }: Plan): 'day' | 'period' {
  return options.time_grain || options.compare_to ? 'period' : 'day';
}

/** The first or last day that a dated row covers. Weeks and months are cut to the range. */
export function covered(id: string, plan: Plan): string {
  const { time_grain } = plan.options;
  if (!time_grain) return dayKey(plan);
  if (id === 'start_time') return 'greatest(period, {first:Date})';
  const next = `${time_grain === 'week' ? 'addWeeks' : 'addMonths'}(toDate32(period), 1)`;
  return `least(${next} - 1, {until:Date32})`;
}

/** A column that is no figure, as JSON text in quotes. */
export function jsonText({ id, source }: RowColumn, plan: Plan): string {
  if (source.kind === 'load') return `toJSONString(${id})`;
  if (source.kind !== 'dimension') {
    return `toJSONString(${plan.breakdown.day ? covered(id, plan) : edgeOf(id)})`;
  }
  const { dimension, column } = source;
  if (!column.name) return `toJSONString(${dimension.key})`;
  return plan.closed ? `toJSONString(${column.id})` : lookUp(dimension, column.name, plan, true);
}

/** What a filter compares with its values. */
export function filtered({ dimension, column }: FilterField, plan: Plan): string {
  if (!column?.name) return dimension.key;
  return plan.closed ? `r.${column.id}` : lookUp(dimension, column.name, plan);
}

/** The name of an id; the dictionaries also have it as JSON text. */
function lookUp({ key }: Dimension, name: NameSource, { routing, past }: Plan, json = false): string {
  const dictionary = routing ? `${routing.database}.${name.dictionary}` : name.dictionary;
  const attribute = json ? `${name.attribute}_json` : name.attribute;
  const unknown = name.otherwise === 'id' ? key : "''";
  if (past) {
    const text = nameThen(key, name, unknown);
    return json ? `toJSONString(${text})` : text;
  }
  const otherwise = json ? `toJSONString(${unknown})` : unknown;
  return `dictGetOrDefault('${dictionary}', '${attribute}', ({account:String}, ${key}), ${otherwise})`;
}
