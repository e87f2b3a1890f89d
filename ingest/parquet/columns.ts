import { type FileMetaData, parquetSchema, type SchemaElement, type SchemaTree } from 'hyparquet';
import { mostBytes, type SchemaColumn, type TypedColumn } from '../event/typed-columns.ts';
import { InputError } from '../input/input-error.ts';

/**
 * The columns of a file, those within structures by their path. Whole numbers, amounts, times and truth values are read
 * as what they are, any other type as its text; as Nullable where the file may hold NULL, so that it is not a zero.
 * @throws {InputError} for a damaged schema
 */
export function parquetColumns(file: string, metadata: FileMetaData): SchemaColumn[] {
  try {
    return parquetSchema(metadata).children.flatMap((child) => columnsWithin(child, true));
  } catch (cause) {
    throw new InputError(`${file}: is a damaged Parquet file: its schema cannot be read`, { cause });
  }
}

function columnsWithin({ element, children, path }: SchemaTree, isRequired: boolean): SchemaColumn[] {
  const name = path.join('.');
  const annotation = element.logical_type?.type ?? element.converted_type;
  if (element.repetition_type === 'REPEATED') return [{ name, read: undefined, called: 'a list' }];
  const alwaysThere = isRequired && element.repetition_type === 'REQUIRED';
  if (element.type === undefined) {
    if (!annotation) return children.flatMap((child) => columnsWithin(child, alwaysThere));
    return [{ name, read: undefined, called: `a ${annotation.toLowerCase()}` }];
  }
  const { precision = 0 } = element.logical_type?.type === 'DECIMAL' ? element.logical_type : element;
  const bytes = element.type === 'INT64' ? 8 : (element.type_length ?? 0);
  const fitting = mostBytes(precision);
  // ClickHouse without its pull request 113046 (26.7.3.8) writes the values beyond the memory that it takes for them.
  if (annotation === 'DECIMAL' && bytes > fitting) {
    const called = `a decimal of ${precision} digits in ${bytes} bytes instead of ${fitting}`;
    return [{ name, read: undefined, called }];
  }
  const { type, ...rest } = typeOf(element);
  return [{ name, read: { type: alwaysThere ? type : `Nullable(${type})`, ...rest }, called: element.type }];
}

const text = { type: 'String', kind: undefined } as const;
const whole = (type: string) => ({ type, kind: 'whole' }) as const;
const time = (places: number) => ({ type: `DateTime64(${places}, 'UTC')`, kind: 'time' }) as const;

/**
 * Nanoseconds of a day and the number of that day, as Spark, Hive and Impala write times, which name no zone. Read as a
 * time by the engine, one beyond 2262 would fail the whole file; here it is a year that no event has.
 */
const int96 = {
  type: 'FixedString(12)',
  kind: undefined,
  value: (column: string) =>
    `toString(fromUnixTimestamp64Milli((toInt64(reinterpretAsInt32(substring(${column}, 9, 4))) - 2440588) * 86400000 + intDiv(reinterpretAsInt64(substring(${column}, 1, 8)), 1000000), 'UTC'))`,
} as const;

/** The text of a time of day, to which the engine adds a day. */
const timeOfDay = { ...text, value: (column: string) => `substring(${column}, 12)` } as const;

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
    case 'TIME':
      return timeOfDay;
    case 'DECIMAL':
      // All of its numbers are money: 6 places, 12 digits before them.
      return logical.scale <= 6 && logical.precision - logical.scale <= 12
        ? { type: 'Decimal(18, 6)', kind: 'decimal' }
        : text;
    case 'INTEGER':
      return whole(logical.bitWidth === 64 && !logical.isSigned ? 'UInt64' : 'Int64');
    case undefined:
      if (type === 'BOOLEAN') return { type: 'Bool', kind: 'truth' };
      if (type === 'INT96') return int96;
      if (converted === 'TIMESTAMP_MILLIS') return time(3);
      if (converted === 'TIMESTAMP_MICROS') return time(6);
      if (converted?.startsWith('TIME_')) return timeOfDay;
      if (converted?.startsWith('INT_')) return whole('Int64');
      if (converted?.startsWith('UINT_')) return whole('UInt64');
      return converted === undefined && (type === 'INT32' || type === 'INT64') ? whole('Int64') : text;
    default:
      return text;
  }
}
