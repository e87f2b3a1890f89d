import { isUtf8 } from 'node:buffer';
import { CsvError, parse as parseCsv } from 'csv-parse/sync';
import { scanRecords } from '../chunks/csv-scan.ts';
import type { LineFault, LineFields } from './event-rules.ts';
import { jsonFields, mayBeTaken, quickJsonFields } from './ndjson-line.ts';

/** One line of a chunk, read by itself. */
export interface LineRecord {
  /** Line of the file, from 1; in Parquet the row. */
  readonly line: number;
  /** Bytes of what it was read from; none in Parquet. */
  readonly start: number;
  readonly end: number;
  /** The line as it came. */
  readonly raw: Buffer;
  /** What it holds, in less time and not digit for digit; undefined where that is not certain enough to judge it. */
  readonly quick?: LineFields | undefined;
  readonly read: () => LineContent;
}

export interface LineContent {
  /** What could be read of it, as text. */
  readonly fields: LineFields;
  /** Why it cannot be read, where it cannot. */
  readonly faults: readonly LineFault[];
  /** The engine may read it all the same. */
  readonly doubtful?: boolean;
}

const newline = 10;
const quote = 34;
/** A quoted field longer than this was never closed. */
const maxRecordBytes = 1 << 20;
const unreadable = (reason: string): LineFault[] => [{ field: '', reason }];

/** The lines of NDJSON, blank ones left out. */
export function* ndjsonRecords(body: Buffer, firstLine: number): Generator<LineRecord> {
  const sound = damageOf(body) === undefined;
  for (const { line, start, end, raw } of lines(body, firstLine)) {
    const damage = sound ? undefined : damageOf(raw);
    const text = damage ? '' : raw.toString();
    yield {
      line,
      start,
      end,
      raw,
      quick: damage ? undefined : quickJsonFields(text),
      read() {
        if (damage) return { fields: {}, faults: unreadable(damage) };
        const content = jsonFields(text);
        return { ...content, doubtful: content.faults.some(({ field }) => field === '') && mayBeTaken(text) };
      },
    };
  }
}

/** The records of CSV. One with damaged quotes ends at the end of its line, so that it harms no other. */
export function* csvRecords(
  body: Buffer,
  firstLine: number,
  columns: readonly string[],
): Generator<LineRecord> {
  let line = firstLine;
  for (let start = 0; start < body.length; ) {
    const lineEnd = endOf(body, body.indexOf(newline, start));
    const limit = Math.min(body.length, start + maxRecordBytes);
    const record = readCsv(
      body.subarray(start, endOf(body, scanRecords(body, start, limit, 1).last)),
      columns,
    );
    const damaged = record.faults.length > 0 && record.bytes > lineEnd - start;
    const { bytes, raw, ...content } = damaged ? readCsv(body.subarray(start, lineEnd), columns) : record;
    if (raw.length > 0) {
      yield {
        line,
        start,
        end: start + raw.length,
        raw,
        quick: quickOf(content),
        read() {
          return content;
        },
      };
    }
    line += lineEndsIn(body.subarray(start, start + bytes + 1));
    start += bytes + 1;
  }
}

/** What is read at once is exact. */
function quickOf({ fields, faults }: LineContent): LineFields | undefined {
  return faults.length === 0 ? fields : undefined;
}

function lineEndsIn(bytes: Buffer): number {
  let found = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) found++;
  return found;
}

function readCsv(
  bytes: Buffer,
  columns: readonly string[],
): LineContent & { readonly bytes: number; readonly raw: Buffer } {
  const raw = trimmed(bytes);
  return { bytes: bytes.length, raw, ...csvFields(raw, columns) };
}

/** The lines of TSV with ClickHouse's escapes (`\t`, `\n`, `\\`). */
export function* tsvRecords(
  body: Buffer,
  firstLine: number,
  columns: readonly string[],
): Generator<LineRecord> {
  for (const span of lines(body, firstLine)) {
    const content = cellFields(span.raw, span.raw.toString().split('\t').map(unescapeTsv), columns);
    yield {
      ...span,
      quick: quickOf(content),
      read() {
        return content;
      },
    };
  }
}

function* lines(
  body: Buffer,
  firstLine: number,
): Generator<Pick<LineRecord, 'line' | 'start' | 'end' | 'raw'>> {
  let line = firstLine;
  for (let start = 0; start < body.length; line++) {
    const end = endOf(body, body.indexOf(newline, start));
    const raw = trimmed(body.subarray(start, end));
    if (raw.length > 0) yield { line, start, end: start + raw.length, raw };
    start = end + 1;
  }
}

function csvFields(raw: Buffer, columns: readonly string[]): LineContent {
  const text = raw.toString();
  const plain = raw.includes(quote) ? plainlyQuotedCells(text) : text.split(',');
  if (plain) return csvCellFields(raw, plain, columns);
  try {
    const [cells = []] = parseCsv(raw, {
      relax_column_count: true,
      relax_quotes: true,
      trim: true,
    }) as string[][];
    return csvCellFields(raw, cells, columns);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return { fields: {}, faults: unreadable(`is not readable as CSV: ${error.message}`) };
  }
}

/** Like the engine: blanks around a cell are not part of it, and a comma may end the line. */
function csvCellFields(raw: Buffer, cells: readonly string[], columns: readonly string[]): LineContent {
  const ended = cells.length > columns.length && cells.at(-1) === '';
  return cellFields(raw, (ended ? cells.slice(0, -1) : cells).map(csvText), columns);
}

/**
 * The cells of a record in which a quote only ever opens or closes a whole cell, as programs write them; undefined
 * for any other, which is read by a library that takes ten times as long.
 */
export function plainlyQuotedCells(text: string): string[] | undefined {
  const cells: string[] = [];
  for (let at = 0; ; ) {
    const quoted = text.charCodeAt(at) === quote;
    const from = quoted ? at + 1 : at;
    const closed = quoted ? text.indexOf('"', from) : -1;
    if (quoted && closed < 0) return undefined;
    const comma = text.indexOf(',', closed < 0 ? from : closed);
    const end = comma < 0 ? text.length : comma;
    if (quoted ? closed + 1 !== end : text.slice(from, end).includes('"')) return undefined;
    cells.push(text.slice(from, quoted ? closed : end));
    if (comma < 0) return cells;
    at = comma + 1;
  }
}

function cellFields(raw: Buffer, cells: readonly string[], columns: readonly string[]): LineContent {
  const damage = damageOf(raw);
  if (damage) return { fields: {}, faults: unreadable(damage) };
  const fields: Record<string, string | undefined> = {};
  for (const [n, name] of columns.entries()) fields[name] = cells[n];
  return cells.length === columns.length
    ? { fields, faults: [] }
    : { fields, faults: unreadable(`has ${cells.length} columns, the header has ${columns.length}`) };
}

/** Why the bytes are no text, whatever the format. */
function damageOf(raw: Buffer): string | undefined {
  if (!isUtf8(raw)) return 'is not valid UTF-8';
  return raw.includes(0) ? 'has a NUL byte: the file is damaged' : undefined;
}

function csvText(cell: string): string {
  const text = cell.startsWith(' ') || /[ \t]$|^\t/.test(cell) ? cell.replace(/^[ \t]+|[ \t]+$/g, '') : cell;
  return text === '\\N' ? '' : text;
}

function unescapeTsv(cell: string): string {
  const escapes: Record<string, string> = { t: '\t', n: '\n', r: '\r', '\\': '\\' };
  if (cell === '\\N') return '';
  return cell.replace(/\\(.)/g, (whole, letter: string) => escapes[letter] ?? whole);
}

/** The end of the last line is the end of the body. */
function endOf(body: Buffer, found: number): number {
  return found < 0 ? body.length : found;
}

function trimmed(line: Buffer): Buffer {
  return line.at(-1) === 13 ? line.subarray(0, -1) : line;
}
