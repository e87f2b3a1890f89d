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

/** Of the beginning of a run of text. */
export interface CountedStart extends Counted {
  /** Bytes, without a line end at the end. */
  readonly length: number;
}

/** Of CSV with quotes. The last record has no line end behind it. @param most no more records are counted */
export function recordsIn(body: Buffer, delimiter: number, most?: number): CountedStart {
  const found = scanRecords(body, 0, body.length, { delimiter, final: true, ...(most && { most }) });
  if (found.records === most) return wholeRecords(body, found);
  const { last, records, lines, ...cells } = found;
  const rest = linesIn(body.subarray(last + 1));
  return {
    ...cells,
    rows: records + 1,
    lines: lines + rest.lines,
    multiLine: cells.multiLine || rest.lines > 0,
    length: body.length,
  };
}

/** Of the records that were found in CSV; at least one. */
export function wholeRecords(
  body: Buffer,
  { last, records, lines, ...cells }: ReturnType<typeof scanRecords>,
): CountedStart {
  const length = trimEnd(body, last);
  const behind = linesIn(body.subarray(length, last + 1)).lines;
  return { ...cells, rows: records, lines: lines - behind, length };
}

/** Of text without quotes, or where quotes mean nothing. @param most no more records are counted */
export function linesIn(body: Buffer, most = Number.POSITIVE_INFINITY): CountedStart {
  let rows = 0;
  let lines = 0;
  let start = 0;
  const counted = (length: number) => ({ rows, lines, multiLine: false, plainCells: true, length });
  for (let at = body.indexOf(newline); at >= 0; at = body.indexOf(newline, start)) {
    const end = withoutReturns(body, start, at);
    if (end > start && ++rows === most) return counted(end);
    lines++;
    start = at + 1;
  }
  if (withoutReturns(body, start, body.length) > start) rows++;
  return counted(body.length);
}

export function isLineEnd(byte: number | undefined): boolean {
  return byte === newline || byte === carriageReturn;
}
