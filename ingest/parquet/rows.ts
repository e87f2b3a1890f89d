import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { confirmedPattern } from '../event/event-insert.ts';
import type { LineFields } from '../event/event-rules.ts';
import type { LineRecord } from '../event/line-records.ts';

/** The rows of a Parquet file from `firstRow` to `lastRow`, from 1, both included; `raw` is NDJSON. */
export async function* parquetRecords(
  path: string,
  firstRow: number,
  lastRow: number,
): AsyncGenerator<LineRecord> {
  const file = await asyncBufferFromFile(path);
  const whole = await parquetMetadataAsync(file);
  const decimals = whole.schema.filter(
    (column) => column.converted_type === 'DECIMAL' || column.logical_type?.type === 'DECIMAL',
  );
  const scales = new Map(decimals.map(({ name, scale }) => [name, scale ?? 0]));
  // The reader would make floating point numbers of decimals: it sees the whole numbers that they are stored as.
  const plain = { converted_type: undefined, logical_type: undefined };
  const schema = whole.schema.map((column) => (scales.has(column.name) ? { ...column, ...plain } : column));
  const step = 50_000;
  for (let rowStart = firstRow - 1; rowStart < lastRow; rowStart += step) {
    const slice = await parquetReadObjects({
      file,
      metadata: { ...whole, schema },
      utf8: false,
      compressors,
      rowStart,
      rowEnd: Math.min(lastRow, rowStart + step),
    });
    for (const [index, row] of slice.entries()) {
      const fields = Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, parquetText(value, scales.get(name))]),
      );
      yield {
        line: rowStart + index + 1,
        start: 0,
        end: 0,
        raw: Buffer.from(ndjsonOf(row, fields)),
        quick: fields,
        read: () => ({ fields, faults: [] }),
      };
    }
  }
}

const trueOrFalse = new RegExp(confirmedPattern);

/** The row as a line that is read again like the row: text, but for truth values. */
function ndjsonOf(row: Record<string, unknown>, fields: LineFields): string {
  return JSON.stringify(fields, (name, text) => {
    if (typeof row[name] === 'boolean') return row[name];
    // In JSON it is a truth value, whatever the file has.
    return name === 'confirmed' && trueOrFalse.test(text) ? /^(true|1)$/i.test(text) : text;
  });
}

/** @param scale of a decimal, which is stored as a whole number */
function parquetText(value: unknown, scale?: number): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (scale !== undefined) return decimalText(wholeNumber(value), scale);
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  return value instanceof Date ? value.toISOString() : String(value);
}

function wholeNumber(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(String(value));
  return BigInt.asIntN(8 * value.length, BigInt(`0x0${Buffer.from(value).toString('hex')}`));
}

function decimalText(value: bigint, scale: number): string {
  const digits = String(value < 0 ? -value : value).padStart(scale + 1, '0');
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  return value < 0 ? `-${text}` : text;
}
