import { quoted } from '../../clickhouse/quoted.ts';
import type { CellRules } from './cells.ts';
import { nulReason } from './text-records.ts';

/** What stands behind a backslash, and for what. ClickHouse escapes apostrophes, too. */
const escapes = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', "'": "'", '"': '"', '/': '/' };

/**
 * Cells as databases dump them: without quotes, with backslash escapes, also of the delimiter, as MySQL writes it. A cell
 * whose escapes cannot be read becomes a NUL, which no cell is.
 */
export function escapedCells(delimiter: string): CellRules {
  const split = (record: string) => `splitByChar(${quoted(delimiter)}, ${record})`;
  // A backslash that is escaped escapes nothing; meanwhile it is a NUL, and a delimiter that is escaped one behind a backslash.
  const paired = `replaceAll(record, ${quoted('\\\\')}, '\\0')`;
  const outside = `replaceAll(${paired}, ${quoted(`\\${delimiter}`)}, '\\\\\\0')`;
  const unescaped = Object.entries(escapes).reduce(
    (cell, [escaped, text]) => `replaceAll(${cell}, ${quoted(`\\${escaped}`)}, ${quoted(text)})`,
    `replaceAll(cell, '\\\\\\0', ${quoted(delimiter)})`,
  );
  return {
    cells: (records) => `SELECT at_line, record, if(position(record, '\\\\') = 0, ${split('record')},
        arrayMap(cell -> if(position(cell, '\\\\') = 0 OR cell = '\\\\N', replaceAll(cell, '\\0', '\\\\'), '\\0'),
          arrayMap(cell -> if(position(cell, '\\\\') = 0, cell, ${unescaped}), ${split(outside)}))) AS cells
      FROM (${records})`,
    rules: [
      { broken: `has(cells, '\\0') AND position(${paired}, ${quoted('\\0')}) > 0`, reason: nulReason },
      { broken: "has(cells, '\\0')", reason: 'a backslash in the record begins no escape of a dump' },
    ],
  };
}

/** The cells of the first line. */
export function escapedCellsOf(line: string, delimiter: string): string[] {
  const cells = [''];
  // A backslash and what it escapes are one part.
  for (const part of line.match(/\\?./gsu) ?? []) {
    if (part === delimiter) cells.push('');
    else cells.push(cells.pop() + part);
  }
  return cells;
}
