const tab = 9;
export const newline = 10;
export const carriageReturn = 13;
const space = 32;
export const quote = 34;

/** A quote that is not closed within this many bytes opens nothing: its line is a record, and a faulty one. */
export const maxQuotedBytes = 1 << 20;

/** A 1 for each byte that the scanner passes over, a 0 for those that it has to look at. */
function passing(...lookedAt: number[]): Uint8Array {
  const bytes = new Uint8Array(256).fill(1);
  for (const byte of lookedAt) bytes[byte] = 0;
  return bytes;
}

/** Where the records of a run of CSV end. */
interface RecordEnds {
  /** Position of the line end of the last whole record, −1 where no record is whole. */
  readonly last: number;
  /** Whole records; blank lines do not count. */
  readonly records: number;
  /** Line ends up to the last record's own. */
  readonly lines: number;
  /** Some record holds line ends. */
  readonly multiLine: boolean;
  /** See `Counted`; of all cells that begin before the limit. */
  readonly plainCells: boolean;
}

interface ScanOptions {
  /** One byte. */
  readonly delimiter: number;
  /** No bytes follow the limit: a quote that is open there is never closed. */
  readonly final: boolean;
  /** Ends behind so many records. */
  readonly most?: number;
  /** Called with each whole record: where it is, without its line end, and how many lines are before it. */
  readonly onRecord?: (start: number, end: number, linesBefore: number) => void;
}

/**
 * Finds the records that end in `buffer[start, limit)`. A line end inside a quoted cell belongs to the cell; a quote
 * opens a cell only at its beginning, blanks before it do not count.
 */
export function scanRecords(
  buffer: Buffer,
  start: number,
  limit: number,
  { delimiter, final, most = Number.POSITIVE_INFINITY, onRecord }: ScanOptions,
): RecordEnds {
  let last = -1;
  let records = 0;
  let lines = 0;
  let linesInRecord = 0;
  let multiLine = false;
  let plainCells = true;
  // As long as cells are plain, what would make them otherwise is looked at, too.
  let inQuotes = passing(newline, quote, delimiter);
  let outside = passing(newline, delimiter, quote, carriageReturn);
  const cellIsOther = () => {
    plainCells = false;
    inQuotes = passing(newline, quote);
    outside = passing(newline, delimiter);
  };
  let recordStart = start;
  const endRecord = (at: number) => {
    const end = withoutReturns(buffer, recordStart, at);
    if (end > recordStart) {
      records++;
      onRecord?.(recordStart, end, lines);
    }
    last = at;
    multiLine ||= linesInRecord > 0;
    lines += linesInRecord + 1;
    linesInRecord = 0;
    recordStart = at + 1;
  };
  // One cell a turn; the loops within it look at a byte each and nothing else.
  for (let at = start; at < limit && records < most; at++) {
    const cell = at;
    while (at < limit && buffer[at] !== delimiter && (buffer[at] === space || buffer[at] === tab)) at++;
    if (buffer[at] === quote) {
      const opened = at;
      if (plainCells && opened > cell) cellIsOther();
      for (at++; ; at++) {
        while (at < limit && inQuotes[buffer[at] as number] === 1) at++;
        if (at >= limit || at - opened > maxQuotedBytes) break;
        const closes = buffer[at] === quote && buffer[at + 1] !== quote;
        if (closes) break;
        if (plainCells) cellIsOther();
        if (buffer[at] === newline) linesInRecord++;
        else if (buffer[at] === quote) at++;
      }
      const open = at >= limit || at - opened > maxQuotedBytes;
      if (open && !final && at - opened <= maxQuotedBytes)
        return { last, records, lines, multiLine, plainCells };
      if (open) {
        if (plainCells) cellIsOther();
        // The line of the record's begin is the record.
        const end = buffer.indexOf(newline, recordStart);
        if (end < 0 || end >= limit) return { last, records, lines, multiLine, plainCells };
        linesInRecord = 0;
        endRecord(end);
        at = end;
        continue;
      }
      at++;
      if (plainCells && at < limit && outside[buffer[at] as number] === 1) cellIsOther();
    }
    for (; ; at++) {
      while (at < limit && outside[buffer[at] as number] === 1) at++;
      if (at >= limit || buffer[at] === delimiter || buffer[at] === newline) break;
      const endsLine = buffer[at] === carriageReturn && (at + 1 >= limit || buffer[at + 1] === newline);
      if (plainCells && !endsLine) cellIsOther();
    }
    if (at < limit && buffer[at] === newline) endRecord(at);
  }
  return { last, records, lines, multiLine, plainCells };
}

/** The end of a line without the carriage returns before its end. */
export function withoutReturns(buffer: Buffer, start: number, end: number): number {
  let at = end;
  while (at > start && buffer[at - 1] === carriageReturn) at--;
  return at;
}
