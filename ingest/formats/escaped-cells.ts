import { quoted } from '../event/sql.ts';
import type { CellRules } from './cells.ts';

/**
 * Cells as databases dump them: without quotes, with backslash escapes. Their escapes are those of JSON; a cell whose
 * escapes cannot be read becomes a NUL, which no cell is.
 */
export function escapedCells(delimiter: string): CellRules {
  const split = `splitByChar(${quoted(delimiter)}, record)`;
  const unescaped = `ifNull(JSONExtract(concat('"', replaceAll(cell, '"', '\\\\"'), '"'), 'Nullable(String)'), '\\0')`;
  return {
    cells: (records) => `SELECT at_line, record, if(position(record, '\\\\') = 0, ${split},
        arrayMap(cell -> if(position(cell, '\\\\') = 0 OR cell = '\\\\N', cell, ${unescaped}), ${split})) AS cells
      FROM (${records})`,
    rule: { broken: "has(cells, '\\0')", reason: 'a backslash in the record begins no escape of a dump' },
  };
}
