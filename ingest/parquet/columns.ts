import type { SchemaElement } from 'hyparquet';
import type { Mapping } from '../event/mapping.ts';
import type { TypedColumn } from '../event/typed-columns.ts';
import { InputError } from '../input/input-error.ts';

/**
 * How ClickHouse is to read the columns that fields come from. Whole numbers, amounts, times and truth values are read
 * as what they are, any other type as its text; as Nullable where the file may hold NULL, so that it is not a zero.
 * @throws {InputError} for a column that is a list or a structure
 */
export function parquetColumns(
  file: string,
  schema: readonly SchemaElement[],
  mapping: Mapping,
): TypedColumn[] {
  return mapping.columns.flatMap((name) => {
    const element = schema.find((each) => each.name === name);
    if (!element) return [];
    if (element.type === undefined) {
      throw new InputError(`${file}: column ${name} is a list or a structure; write it as plain values`);
    }
    const { type, kind } = typeOf(element);
    return [{ name, type: element.repetition_type === 'REQUIRED' ? type : `Nullable(${type})`, kind }];
  });
}

const text = { type: 'String', kind: undefined } as const;
const whole = (type: string) => ({ type, kind: 'whole' }) as const;
const time = (places: number) => ({ type: `DateTime64(${places}, 'UTC')`, kind: 'time' }) as const;

function typeOf({
  type,
  converted_type: converted,
  logical_type: logical,
}: SchemaElement): Omit<TypedColumn, 'name'> {
  switch (logical?.type) {
    case 'TIMESTAMP':
      // A time without a zone is read as text, so that --timezone holds for it.
      if (!logical.isAdjustedToUTC) return text;
      return time({ MILLIS: 3, MICROS: 6, NANOS: 9 }[logical.unit]);
    case 'DECIMAL':
      // All of its numbers are money: 6 places, 12 digits before them.
      return logical.scale <= 6 && logical.precision - logical.scale <= 12
        ? { type: 'Decimal(18, 6)', kind: 'decimal' }
        : text;
    case 'INTEGER':
      return whole(logical.bitWidth === 64 && !logical.isSigned ? 'UInt64' : 'Int64');
    case undefined:
      if (type === 'BOOLEAN') return { type: 'Bool', kind: 'truth' };
      if (converted === 'TIMESTAMP_MILLIS') return time(3);
      if (converted === 'TIMESTAMP_MICROS') return time(6);
      if (converted?.startsWith('INT_')) return whole('Int64');
      if (converted?.startsWith('UINT_')) return whole('UInt64');
      return converted === undefined && (type === 'INT32' || type === 'INT64') ? whole('Int64') : text;
    default:
      return text;
  }
}
