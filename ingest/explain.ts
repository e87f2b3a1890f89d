import { isUtf8 } from 'node:buffer';
import { CsvError, type Info, parse as parseCsv } from 'csv-parse/sync';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { isLosslessNumber, parse as parseJson } from 'lossless-json';
import type { Chunk } from './chunks.ts';
import { faultOf, type LineFault } from './line.ts';

/** Where a refused chunk is at fault. */
export interface RowFault extends LineFault {
  /** Line of the file, from 1; for Parquet the row, from 1. */
  readonly line: number;
}

/** The first faulty line of an NDJSON chunk, undefined when none breaks a rule. */
export function explainNdjson({ body, firstLine }: Pick<Chunk, 'body' | 'firstLine'>): RowFault | undefined {
  let line = firstLine;
  for (let at = 0; at <= body.length; line++) {
    const end = body.indexOf(10, at);
    const bytes = body.subarray(at, end < 0 ? body.length : end);
    const fault = jsonFault(bytes);
    if (fault) return { line, ...fault };
    at += bytes.length + 1;
  }
  return undefined;
}

function jsonFault(bytes: Buffer): LineFault | undefined {
  if (!isUtf8(bytes)) return { reason: 'is not valid UTF-8' };
  const text = bytes.toString().trim();
  if (text === '') return undefined;
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return { reason: `is not one JSON object: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isLosslessNumber(value)) {
    return { reason: 'is not one JSON object' };
  }
  const fields: Record<string, string | undefined> = {};
  for (const [name, field] of Object.entries(value)) {
    const wrong = textOf(name, field);
    if (typeof wrong === 'object') return wrong;
    fields[name] = wrong;
  }
  return faultOf(fields);
}

function textOf(field: string, value: unknown): string | undefined | LineFault {
  if (value === null) return undefined;
  if (typeof value === 'string')
    return field === 'confirmed' ? { field, reason: 'must be true or false' } : value;
  if (isLosslessNumber(value)) return value.toString();
  if (typeof value === 'boolean' && field === 'confirmed') return String(value);
  return {
    field,
    reason: `must be text or a number, not ${Array.isArray(value) ? 'a list' : `a ${typeof value}`}`,
  };
}

/** The first faulty record of a CSV chunk, undefined when none breaks a rule. */
export function explainCsv(
  { body, firstLine }: Pick<Chunk, 'body' | 'firstLine'>,
  header: Buffer,
): RowFault | undefined {
  const names = (parseCsv(header) as string[][])[0] ?? [];
  try {
    const records = parseCsv(body, { info: true, relax_column_count: true }) as unknown as {
      record: string[];
      info: Info;
    }[];
    for (const { record, info } of records) {
      const line = firstLine + info.lines - 1;
      if (record.length !== names.length) {
        return { line, reason: `has ${record.length} columns, the header has ${names.length}` };
      }
      const fault = faultOf(Object.fromEntries(names.map((name, index) => [name, record[index]])));
      if (fault) return { line, ...fault };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = firstLine + Number('lines' in error ? error.lines : 1) - 1;
    return { line, reason: `is not readable as CSV: ${error.message}` };
  }
  return undefined;
}

/** The first faulty row of a Parquet file, undefined when none breaks a rule. */
export async function explainParquet(path: string, rows: number): Promise<RowFault | undefined> {
  const file = await asyncBufferFromFile(path);
  const step = 50_000;
  for (let rowStart = 0; rowStart < rows; rowStart += step) {
    const slice = await parquetReadObjects({ file, rowStart, rowEnd: Math.min(rows, rowStart + step) });
    for (const [index, row] of slice.entries()) {
      const fields = Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, parquetText(value)]),
      );
      const fault = faultOf(fields);
      if (fault) return { line: rowStart + index + 1, ...fault };
    }
  }
  return undefined;
}

function parquetText(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  return value instanceof Date ? value.toISOString() : String(value);
}
