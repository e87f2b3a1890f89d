import type { Dimension, NameSource } from '../../catalog/catalog.ts';
import type { RowColumn } from './columns.ts';
import type { Plan } from './plan.ts';

/** A column of the rows as a SELECT has it, under its id. */
export function named(column: RowColumn, plan: Plan): string {
  const value = expression(column, plan);
  return value === column.id ? value : `${value} AS ${column.id}`;
}

/** What a column is computed from, after the grouping. */
function expression({ id, source }: RowColumn, plan: Plan): string {
  switch (source.kind) {
    case 'range':
      return plan.breakdown.day ? 'toString(day)' : `{${id === 'start_time' ? 'start' : 'end'}:String}`;
    case 'dimension': {
      const { dimension, column } = source;
      if (!column.name) return dimension.key;
      return lookUp(dimension, column.name, plan);
    }
    case 'measure':
      return id;
    case 'ratio': {
      const { numerator, denominator, times } = source;
      const scaled = times === 1 ? numerator : `${times} * ${numerator}`;
      // Decimal division cuts off after the dividend's scale: 7 places, then rounding to 6, is exact.
      return `if(${denominator} = 0, toDecimal128(0, 6), CAST(round(toDecimal128(${scaled}, 7) / greatest(${denominator}, 1), 6), 'Decimal(38, 6)'))`;
    }
  }
}

/** The day, name or id of a column as JSON text, in quotes. */
export function jsonText({ source }: RowColumn, plan: Plan): string {
  if (source.kind !== 'dimension') return 'toJSONString(day)';
  const { dimension, column } = source;
  return column.name ? lookUp(dimension, column.name, plan, true) : `toJSONString(${dimension.key})`;
}

/** The name of an id; the dictionaries also have it as JSON text. */
function lookUp({ key }: Dimension, name: NameSource, { routing }: Plan, json = false): string {
  const dictionary = routing ? `${routing.database}.${name.dictionary}` : name.dictionary;
  const attribute = json ? `${name.attribute}_json` : name.attribute;
  const unknown = name.otherwise === 'id' ? key : "''";
  const otherwise = json ? `toJSONString(${unknown})` : unknown;
  return `dictGetOrDefault('${dictionary}', '${attribute}', ({account:String}, ${key}), ${otherwise})`;
}
