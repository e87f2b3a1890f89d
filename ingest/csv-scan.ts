const tab = 9;
const newline = 10;
const carriageReturn = 13;
const space = 32;
const quote = 34;
const comma = 44;

/** Where the records of a run of CSV end. */
export interface RecordEnds {
  /** Position of the line end of the last whole record, −1 where there is none. */
  readonly last: number;
  /** Whole records; blank lines are none. */
  readonly records: number;
  /** Line ends up to the last record's own. */
  readonly lines: number;
}

/**
 * Finds the records that end in `buffer[start, limit)`, at most `most`. A line end inside a quoted field belongs
 * to the field; a quote opens a field only at its beginning,
 * blanks before it do not count.
 */
export function scanRecords(
  buffer: Buffer,
  start: number,
  limit: number,
  most = Number.POSITIVE_INFINITY,
): RecordEnds {
  let last = -1;
  let records = 0;
  let lines = 0;
  let linesInRecord = 0;
  let recordStart = start;
  let quoted = false;
  let fieldStart = true;
  for (let at = start; at < limit && records < most; at++) {
    const byte = buffer[at];
    if (quoted) {
      if (byte !== quote) {
        if (byte === newline) linesInRecord++;
        continue;
      }
      if (buffer[at + 1] === quote) at++;
      else quoted = false;
    } else if (byte === quote && fieldStart) {
      quoted = true;
      fieldStart = false;
    } else if (byte === newline) {
      last = at;
      lines += linesInRecord + 1;
      linesInRecord = 0;
      const blank = at === recordStart || (at === recordStart + 1 && buffer[recordStart] === carriageReturn);
      if (!blank) records++;
      recordStart = at + 1;
      fieldStart = true;
    } else fieldStart = byte === comma || (fieldStart && (byte === space || byte === tab));
  }
  return { last, records, lines };
}
