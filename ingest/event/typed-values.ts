import type { FieldKind, FieldSpec } from '../../catalog/events.ts';
import {
  countReason,
  moneyReason,
  ofValue,
  type Reading,
  timeRange,
  truthReason,
  type Value,
} from './values.ts';

/** A column that a file of Parquet or Avro holds as values of a kind, not as text. */
export type TypedKind = 'whole' | 'decimal' | 'time' | 'truth';

/** Which kinds of values a field takes as they are; any other is read as text. */
export const typedFor: Readonly<Record<FieldKind, readonly TypedKind[]>> = {
  text: [],
  type: [],
  time: ['time'],
  count: ['whole'],
  money: ['decimal'],
  // ClickHouse writes a Bool as a number.
  flag: ['truth', 'whole'],
};

/** Reads a column of values; `column` is a SQL expression of its type, which may be Nullable. Quicker than as text. */
export function readTyped(kind: TypedKind, spec: FieldSpec, column: string): Reading {
  return { given: `isNotNull(${column})`, ...valueOfTyped(kind, spec, column) };
}

function valueOfTyped(
  kind: TypedKind,
  { kind: fieldKind, range = [0, 0] }: FieldSpec,
  column: string,
): Value {
  switch (kind) {
    case 'time': {
      const time = `toDateTime64(${column}, 3, 'UTC')`;
      return {
        value: `ifNull(${time}, toDateTime64(0, 3, 'UTC'))`,
        rules: [timeRange(column)],
      };
    }
    case 'whole':
      if (fieldKind === 'flag') {
        return {
          value: `ifNull(${column} = 1, false)`,
          rules: [ofValue(`${column} < 0 OR ${column} > 1`, truthReason)],
        };
      }
      return {
        value: `toUInt64(ifNull(${column}, 0))`,
        rules: [ofValue(`${column} < ${range[0]} OR ${column} > ${range[1]}`, countReason(range))],
      };
    case 'decimal':
      return {
        value: `toDecimal64(ifNull(${column}, 0), 6)`,
        // A file may break the precision that it names.
        rules: [ofValue(`abs(${column}) >= 1000000000000`, moneyReason)],
      };
    case 'truth':
      return { value: `ifNull(${column}, false)`, rules: [] };
  }
}
