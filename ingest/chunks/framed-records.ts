import { newline, scanRecords, withoutReturns } from './csv/records.ts';

/**
 * How the records of a chunk of text are sent: a record on each line, or, where a record holds line ends, each with
 * the number of its line before it.
 */
export type Framing = 'lines' | 'records';

interface FramingOptions {
  /** Line of the file that the first record begins with, from 1. */
  readonly firstLine: number;
  /** Of CSV, whose records may hold line ends. */
  readonly delimiter?: string;
}

/** Records that are sent at a time. */
const pieceBytes = 1 << 20;
/** What is before a record, at most. */
const headBytes = 8 + 5;

/**
 * Records as RowBinary: the number of the line, and the bytes with their length before them. Blank lines are skipped.
 * @param mark added to each number
 */
export function* framedRecords(
  body: Buffer,
  { firstLine, delimiter }: FramingOptions,
  mark = 0n,
): Generator<Buffer> {
  let piece = Buffer.alloc(0);
  let size = 0;
  for (const { start, end, line } of placesOf(body, delimiter)) {
    const most = headBytes + end - start;
    if (size + most > piece.length) {
      if (size > 0) yield piece.subarray(0, size);
      piece = Buffer.allocUnsafe(Math.max(most, Math.min(pieceBytes, 2 * (body.length - start))));
      size = 0;
    }
    size = piece.writeBigUInt64LE(mark + BigInt(firstLine + line), size);
    size = writeVarint(piece, end - start, size);
    size += body.copy(piece, size, start, end);
  }
  yield piece.subarray(0, size);
}

interface Place {
  readonly start: number;
  readonly end: number;
  /** Lines before it. */
  readonly line: number;
}

/** Records of CSV are looked for in so many bytes at a time. */
const scannedBytes = 1 << 20;

/** Where the records of a chunk are, which has no line end at its end. Not as a list: 16 MiB may have eight million. */
function* placesOf(body: Buffer, delimiter: string | undefined): Generator<Place> {
  let start = 0;
  let line = 0;
  for (let bytes = scannedBytes, limit = 0; delimiter !== undefined && limit < body.length; ) {
    limit = Math.min(start + bytes, body.length);
    const places: Place[] = [];
    const { last, lines } = scanRecords(body, start, limit, {
      delimiter: delimiter.charCodeAt(0),
      final: limit === body.length,
      onRecord: (from, end, before) => void places.push({ start: from, end, line: line + before }),
    });
    yield* places;
    line += lines;
    // A record may hold several long cells in quotes.
    bytes = last < start ? bytes * 2 : scannedBytes;
    start = Math.max(start, last + 1);
  }
  for (; start <= body.length; line++) {
    const found = delimiter === undefined ? body.indexOf(newline, start) : -1;
    const end = found < 0 ? body.length : found;
    const length = withoutReturns(body, start, end) - start;
    if (length > 0) yield { start, end: start + length, line };
    start = end + 1;
  }
}

/** @returns where it ends */
function writeVarint(target: Buffer, value: number, start: number): number {
  let at = start;
  let rest = value;
  for (; rest > 127; rest >>>= 7) target[at++] = (rest & 127) | 128;
  target[at++] = rest;
  return at;
}
