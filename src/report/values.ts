import type { RowColumn } from './columns.ts';
import type { Plan } from './plan.ts';

/** A column of the rows as a SELECT has it, under its id. */
export function named(column: RowColumn, plan: Plan): string {
  const value = expression(column, plan);
  return value === column.id ? value : `${value} AS ${column.id}`;
}

/** What a column is computed from, after the grouping. */
export function expression({ id, source }: RowColumn, { breakdown, shards }: Plan): string {
  switch (source.kind) {
    case 'range':
      return breakdown.day ? 'toString(day)' : `{${id === 'start_time' ? 'start' : 'end'}:String}`;
    case 'dimension': {
      const { key } = source.dimension;
      const { name } = source.column;
      if (!name) return key;
      const otherwise = name.otherwise === 'id' ? key : "''";
      const dictionary = shards ? `${shards.database}.${name.dictionary}` : name.dictionary;
      return `dictGetOrDefault('${dictionary}', '${name.attribute}', ({account:String}, ${key}), ${otherwise})`;
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
