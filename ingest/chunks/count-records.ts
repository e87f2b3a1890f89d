import { carriageReturn, newline, scanRecords, withoutReturns } from './csv/records.ts';

/** What is counted in a run of text. */
export interface Counted {
  /** Records; blank lines do not count. */
  readonly rows: number;
  /** Line ends. */
  readonly lines: number;
  /** Some record holds line ends. */
  readonly multiLine: boolean;
  /**
   * Cells are what is between delimiters, with or without quotes around it: none holds a delimiter, a quote or a line
   * end. False also where that is not known.
   */
  readonly plainCells: boolean;
}

/** The length without the line ends at the end. */
export function trimEnd(buffer: Buffer, length: number): number {
  let end = length;
  while (end > 0 && isLineEnd(buffer[end - 1])) end--;
  return end;
}

/** Of CSV with quotes. The last record has no line end behind it. */
export function recordsIn(body: Buffer, delimiter: number): Counted {
  const { last, records, lines, multiLine, plainCells } = scanRecords(body, 0, body.length, {
    delimiter,
    final: true,
  });
  const rest = linesIn(body.subarray(last + 1));
  return {
    rows: records + 1,
    lines: lines + rest.lines,
    multiLine: multiLine || rest.lines > 0,
    plainCells,
  };
}

/** Of text without quotes, or where quotes mean nothing. */
export function linesIn(body: Buffer): Counted {
  let rows = 0;
  let lines = 0;
  let start = 0;
  for (let at = body.indexOf(newline); at >= 0; at = body.indexOf(newline, start)) {
    lines++;
    if (at > start && withoutReturns(body, start, at) > start) rows++;
    start = at + 1;
  }
  if (withoutReturns(body, start, body.length) > start) rows++;
  return { rows, lines, multiLine: false, plainCells: true };
}

/** Where so many lines with content end, or all of them where there are fewer, and how many there are up to there. */
export function endOfLines(body: Buffer, count: number): { readonly end: number; readonly rows: number } {
  let [rows, start] = [0, 0];
  for (; start < body.length && rows < count; start++) {
    const found = body.indexOf(newline, start);
    const end = found < 0 ? body.length : found;
    if (withoutReturns(body, start, end) > start) rows++;
    start = end;
  }
  return { end: Math.min(start, body.length), rows };
}

export function isLineEnd(byte: number | undefined): boolean {
  return byte === newline || byte === carriageReturn;
}
