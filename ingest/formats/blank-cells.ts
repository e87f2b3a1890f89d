import { quoted } from '../../clickhouse/quoted.ts';
import { matches } from '../event/sql.ts';
import type { CellRules } from './cells.ts';

/** A cell behind blanks: in quotes, in which a backslash may stand before a quote, in brackets, or without either. */
const cell = '[ \\t]+("(?:[^"\\\\]|\\\\.)*"|\\[[^\\]]*\\]|[^ \\t"\\[][^ \\t]*)';

/** Cells between any number of spaces and tabs, as servers write logs. What is in quotes stays as it is. */
export const blankCells: CellRules = {
  cells: (
    records,
  ) => `SELECT at_line, record, if(${matches(`replaceRegexpAll(spaced, ${quoted(cell)}, '')`, '[^ \\t]')}, emptyArrayString(),
        arrayMap(cell -> if(${matches('cell', '^["\\[]')}, substring(cell, 2, length(cell) - 2), cell), extractAll(spaced, ${quoted(cell)}))) AS cells
      FROM (SELECT *, concat(' ', record) AS spaced FROM (${records}))`,
  rules: [
    {
      broken: 'empty(cells)',
      reason: 'a quote or a bracket in the record is not closed, or text follows a closing one',
    },
  ],
};

/** The cells of a line, up to one that is not closed. */
export function blankCellsOf(line: string): string[] {
  return [...` ${line}`.matchAll(new RegExp(cell, 'gy'))].map(([, text = '']) =>
    /^["[]/.test(text) ? text.slice(1, -1) : text,
  );
}
