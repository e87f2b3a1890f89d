import type { ColumnText } from '../event/expressions.ts';
import type { Mapping } from '../event/mapping.ts';
import { matches, quoted } from '../event/sql.ts';
import { mapped, type RecordSource } from './record-source.ts';
import { type Framing, records, unreadable } from './text-records.ts';

export interface CellSourceOptions {
  readonly framing: Framing;
  readonly format: 'csv' | 'tsv';
  readonly delimiter: string;
  readonly columns: readonly string[];
  readonly mapping: Mapping;
}

/** CSV (RFC 4180) and TSV (with backslash escapes, as databases write it): cells in the order of the header. */
export function cellSource({
  framing,
  format,
  delimiter,
  columns,
  mapping,
}: CellSourceOptions): RecordSource {
  const cells = format === 'csv' ? csvCells(delimiter) : tsvCells;
  const columnText: ColumnText = (name) => {
    const n = columns.indexOf(name);
    return n < 0 ? undefined : `if(cells[${n + 1}] = '\\\\N', '', cells[${n + 1}])`;
  };
  return {
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    select: mapping.compute(
      `SELECT at_line, record, emptyArrayString() AS unknown, ${cells} AS cells
      FROM (${records(framing)})`,
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
        broken: `notEmpty(cells) AND (length(cells) < ${columns.length} OR arrayExists(cell -> cell != '', arraySlice(cells, ${columns.length + 1})))`,
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

/**
 * Cells of a CSV record; none where its quotes are broken. Most records have no quotes, or quotes around cells without
 * delimiters, and are split: the pattern that reads every kind takes ten times as long.
 */
function csvCells(delimiter: string): string {
  const d = delimiter.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
  const blank = delimiter === '\t' ? ' ' : ' \\t';
  const plain = `(?:[^"${d}]*|"[^"${d}]*")`;
  const cell = `${d}([${blank}]*"(?:[^"]|"")*"[${blank}]*|[${blank}]*(?:[^"${d}${blank}][^${d}]*)?)`;
  const all = `extractAll(concat(${quoted(delimiter)}, record), ${quoted(cell)})`;
  const unquoted = `if(${matches('cell', `^[${blank}]*"`)}, replaceAll(substring(trim(BOTH ' \\t' FROM cell) AS inner, 2, length(inner) - 2), '""', '"'), cell)`;
  const broken = `arrayStringConcat(found, ${quoted(delimiter)}) != record`;
  return `if(position(record, '"') = 0, splitByChar(${quoted(delimiter)}, record),
        if(${matches('record', `^${plain}(?:${d}${plain})*$`)}, arrayMap(cell -> trim(BOTH '"' FROM cell), splitByChar(${quoted(delimiter)}, record)),
          arrayMap(found -> if(${broken}, emptyArrayString(), arrayMap(cell -> ${unquoted}, found)), [${all}])[1]))`;
}

/** Escapes of TSV are those of JSON; a cell whose escapes cannot be read becomes a NUL, which no cell is. */
const tsvCells = `if(position(record, '\\\\') = 0, splitByChar('\\t', record),
        arrayMap(cell -> if(position(cell, '\\\\') = 0 OR cell = '\\\\N', cell,
          ifNull(JSONExtract(concat('"', replaceAll(cell, '"', '\\\\"'), '"'), 'Nullable(String)'), '\\0')), splitByChar('\\t', record)))`;
