const tab = 9;
const newline = 10;
const carriageReturn = 13;
const space = 32;
const quote = 34;
const comma = 44;

const ordinaryInQuotes = new Uint8Array(256).fill(1);
ordinaryInQuotes[newline] = 0;
ordinaryInQuotes[quote] = 0;

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
  // One field a turn; the loops within it look at a byte each and nothing else.
  for (let at = start; at < limit && records < most; at++) {
    while (at < limit && (buffer[at] === space || buffer[at] === tab)) at++;
    if (buffer[at] === quote) {
      for (at++; ; at++) {
        while (at < limit && ordinaryInQuotes[buffer[at] as number] === 1) at++;
        if (at >= limit) return { last, records, lines };
        if (buffer[at] === newline) linesInRecord++;
        else if (buffer[at + 1] === quote) at++;
        else break;
      }
      at++;
    }
    while (at < limit && buffer[at] !== comma && buffer[at] !== newline) at++;
    if (at < limit && buffer[at] === newline) {
      last = at;
      lines += linesInRecord + 1;
      linesInRecord = 0;
      const blank = at === recordStart || (at === recordStart + 1 && buffer[recordStart] === carriageReturn);
      if (!blank) records++;
      recordStart = at + 1;
    }
  }
  return { last, records, lines };
}
