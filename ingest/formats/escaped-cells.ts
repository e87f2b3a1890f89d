import { quoted } from '../../clickhouse/quoted.ts';
import type { CellRules } from './cells.ts';

/**
 * Cells as databases dump them: without quotes, with backslash escapes. Their escapes are those of JSON, and of the
 * delimiter, as MySQL writes it; a cell whose escapes cannot be read becomes a NUL, which no cell is.
 */
export function escapedCells(delimiter: string): CellRules {
  const split = (record: string) => `splitByChar(${quoted(delimiter)}, ${record})`;
  const code = `\\u${delimiter.charCodeAt(0).toString(16).padStart(4, '0')}`;
  // A backslash that is escaped escapes nothing; meanwhile it is a NUL.
  const paired = `replaceAll(record, ${quoted('\\\\')}, '\\0')`;
  const outside = `replaceAll(${paired}, ${quoted(`\\${delimiter}`)}, ${quoted(code)})`;
  const inside = `replaceAll(replaceAll(cell, '\\0', ${quoted('\\\\')}), '"', '\\\\"')`;
  const unescaped = `ifNull(JSONExtract(concat('"', ${inside}, '"'), 'Nullable(String)'), '\\0')`;
  return {
    cells: (records) => `SELECT at_line, record, if(position(record, '\\\\') = 0, ${split('record')},
        arrayMap(cell -> if(cell = '\\\\N' OR position(cell, '\\\\') + position(cell, '\\0') = 0, cell, ${unescaped}), ${split(outside)})) AS cells
      FROM (${records})`,
    rule: { broken: "has(cells, '\\0')", reason: 'a backslash in the record begins no escape of a dump' },
  };
}

/** The cells of the first line. */
export function escapedCellsOf(line: string, delimiter: string): string[] {
  const behindPairs = '(?<=(?<!\\\\)(?:\\\\\\\\)*)';
  return line.split(new RegExp(behindPairs + delimiter.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&')));
}
