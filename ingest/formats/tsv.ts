import { openText } from '../chunks/text-chunks.ts';
import { cellsReader } from './cells.ts';
import type { Format } from './format.ts';

/** With backslash escapes, as databases write it. */
export const tsv: Format = {
  name: 'tsv',
  endings: ['tsv'],
  clickhouse: 'TabSeparatedWithNames',
  text: { quotes: false },
  open: (input, options) =>
    openText(input, options, {
      header: options.reading.header,
      readerOf: (line) => {
        const sourceOf = cellsReader(input.name, options.reading, line.split('\t'));
        return (framing) =>
          sourceOf(framing, {
            cells: tsvCells,
            rule: {
              broken: "has(cells, '\\0')",
              reason: 'a backslash in the record begins no escape of TSV',
            },
          });
      },
    }),
};

/** Adds the cells of TSV records. Their escapes are those of JSON; a cell whose escapes cannot be read becomes a NUL, which no cell is. */
function tsvCells(select: string): string {
  const unescaped = `ifNull(JSONExtract(concat('"', replaceAll(cell, '"', '\\\\"'), '"'), 'Nullable(String)'), '\\0')`;
  return `SELECT at_line, record, if(position(record, '\\\\') = 0, splitByChar('\\t', record),
        arrayMap(cell -> if(position(cell, '\\\\') = 0 OR cell = '\\\\N', cell, ${unescaped}), splitByChar('\\t', record))) AS cells
      FROM (${select})`;
}
