import type { ColumnText } from '../event/expressions.ts';
import type { Mapping } from '../event/mapping.ts';
import { mapped, type RecordSource } from '../event/record-source.ts';
import { matches, quoted } from '../event/sql.ts';
import { type Framing, records, unreadable } from './text-records.ts';

export interface CellSourceOptions {
  readonly framing: Framing;
  readonly format: 'csv' | 'tsv';
  readonly delimiter: string;
  readonly columns: readonly string[];
  readonly mapping: Mapping;
  /** Of CSV: no cell holds a delimiter, a quote or a line end, and quotes are around whole cells. */
  readonly plainCells?: boolean;
}

/** CSV (RFC 4180) and TSV (with backslash escapes, as databases write it): cells in the order of the header. */
export function cellSource({
  framing,
  format,
  delimiter,
  columns,
  mapping,
  plainCells,
}: CellSourceOptions): RecordSource {
  const csv = plainCells ? plainCsvCells : csvCells;
  const cells = format === 'csv' ? csv : tsvCells;
  const columnText: ColumnText = (name) => {
    const n = columns.indexOf(name);
    return n < 0 ? undefined : `texts[${n + 1}]`;
  };
  return {
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    select: mapping.compute(
      `SELECT *, ${textsOf('cells')} AS texts, emptyArrayString() AS unknown FROM (${cells(records(framing), delimiter)})`,
      columnText,
    ),
    textOf: mapped(mapping, columnText),
    typedOf: () => undefined,
    rules: [
      ...unreadable,
      ...(format === 'csv'
        ? [
            {
              broken: 'empty(cells)',
              reason: 'a quote in the record is not closed, or text follows a closing quote',
            },
          ]
        : [{ broken: "has(cells, '\\0')", reason: 'a backslash in the record begins no escape of TSV' }]),
      {
        // Delimiters at the end of a record hold nothing.
        broken: `length(cells) != ${columns.length} AND notEmpty(cells) AND (length(cells) < ${columns.length} OR arrayExists(cell -> cell != '', arraySlice(cells, ${columns.length + 1})))`,
        reason: `the record must have as many cells as the header, ${columns.length}`,
        shown: 'toString(length(cells))',
      },
    ],
    textRules: mapping.rulesOf,
    raw: 'record',
    columns: mapping.columns,
    condition: mapping.condition,
  };
}

/** Databases write \N for NULL, with or without quotes: no text. To look for it in each cell takes twice as long. */
function textsOf(cells: string): string {
  return `if(position(record, '\\\\N') = 0, ${cells}, arrayMap(cell -> if(cell = '\\\\N', '', cell), ${cells}))`;
}

const withoutQuotes = `arrayMap(cell -> trim(BOTH '"' FROM cell), split)`;

function splitCells(select: string, delimiter: string): string {
  return `SELECT *, splitByChar(${quoted(delimiter)}, record) AS split FROM (${select})`;
}

/** What `csvCells` finds in records of which it is known that all are simple; to look at each again takes 0.2 us. */
function plainCsvCells(select: string, delimiter: string): string {
  return `SELECT at_line, record, ${withoutQuotes} AS cells FROM (${splitCells(select, delimiter)})`;
}

/**
 * Adds the cells of CSV records; none where the quotes of one are broken. Most records have no quotes, or quotes around
 * cells without delimiters, and are split: the pattern that reads every kind takes ten times as long. In layers, so that
 * nothing is computed twice: 0.33 us a record, and 0.48 with a pattern that tells the simple ones.
 */
function csvCells(select: string, delimiter: string): string {
  const d = delimiter.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
  const blank = delimiter === '\t' ? ' ' : ' \\t';
  const cell = `${d}([${blank}]*"(?:[^"]|"")*"[${blank}]*|[${blank}]*(?:[^"${d}${blank}][^${d}]*)?)`;
  const all = `extractAll(concat(${quoted(delimiter)}, record), ${quoted(cell)})`;
  const unquoted = `if(${matches('cell', `^[${blank}]*"`)}, replaceAll(substring(trim(BOTH ' \\t' FROM cell) AS inner, 2, length(inner) - 2), '""', '"'), cell)`;
  const broken = `arrayStringConcat(found, ${quoted(delimiter)}) != record`;
  // A quote at either end, or at none, and no other.
  const [opened, closed] = [`startsWith(cell, '"')`, `endsWith(cell, '"')`];
  const simple = [
    `${opened} = ${closed}`,
    `length(cell) - length(bare) = ${opened} + ${closed}`,
    `position(bare, '"') = 0`,
  ];
  return `SELECT at_line, record, if(simple, bare,
        arrayMap(found -> if(${broken}, emptyArrayString(), arrayMap(cell -> ${unquoted}, found)), [${all}])[1]) AS cells
      FROM (SELECT *, position(record, '"') = 0 OR arrayAll((cell, bare) -> ${simple.reduce((both, each) => `bitAnd(${both}, ${each})`)}, split, bare) AS simple
      FROM (SELECT *, ${withoutQuotes} AS bare FROM (${splitCells(select, delimiter)})))`;
}

/** The same of TSV. Its escapes are those of JSON; a cell whose escapes cannot be read becomes a NUL, which no cell is. */
function tsvCells(select: string): string {
  const unescaped = `ifNull(JSONExtract(concat('"', replaceAll(cell, '"', '\\\\"'), '"'), 'Nullable(String)'), '\\0')`;
  return `SELECT at_line, record, if(position(record, '\\\\') = 0, splitByChar('\\t', record),
        arrayMap(cell -> if(position(cell, '\\\\') = 0 OR cell = '\\\\N', cell, ${unescaped}), splitByChar('\\t', record))) AS cells
      FROM (${select})`;
}
