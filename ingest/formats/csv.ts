import { parse as parseCsv } from 'csv-parse/sync';
import { quoted } from '../../clickhouse/quoted.ts';
import { openText } from '../chunks/text-chunks.ts';
import { blanks } from '../event/reading.ts';
import { matches } from '../event/sql.ts';
import { InputError } from '../input/input-error.ts';
import { blankCells, blankCellsOf } from './blank-cells.ts';
import { type CellRules, cellsReader } from './cells.ts';
import { escapedCells, escapedCellsOf } from './escaped-cells.ts';
import type { Format } from './format.ts';

/** RFC 4180, with any delimiter of one byte. */
export const csv = cellFormat('csv', ',', 'text/csv');

/** The same with a tab, as sheets and ad platforms write it. */
export const tsv = cellFormat('tsv', '\t', 'text/tab-separated-values');

function cellFormat(name: string, own: string, mediaType: string): Format {
  return {
    name,
    endings: [name],
    mediaTypes: [mediaType],
    clickhouse: 'CSVWithNames',
    text: { delimiter: own },
    open: (input, options) => {
      const { reading } = options;
      const { delimiter = own, header, escapes } = reading;
      const isPlain = escapes || delimiter === blanks;
      return openText(input, options, {
        header,
        ...(!isPlain && { quotedDelimiter: delimiter }),
        readerOf: (line) => {
          const names = firstCells(input.name, line, delimiter, escapes);
          const sourceOf = cellsReader(input.name, reading, names);
          return (framing, plainCells) => {
            if (delimiter === blanks) return sourceOf(framing, blankCells);
            return sourceOf(framing, escapes ? escapedCells(delimiter) : quotedCells(delimiter, plainCells));
          };
        },
      });
    },
  };
}

function quotedCells(delimiter: string, plainCells: boolean): CellRules {
  return {
    cells: (records) => (plainCells ? plainCsvCells : csvCells)(records, delimiter),
    rules: [
      {
        broken: 'empty(cells)',
        reason: 'a quote in the record is not closed, or text follows a closing quote',
      },
    ],
  };
}

/** Of 15 MiB of delimiters the names take 1.4 GB and 12 s, in which a service does nothing else. */
const mostFirstLine = 1 << 20;

function firstCells(file: string, line: string, delimiter: string, escapes: boolean): string[] {
  if (line.length > mostFirstLine)
    throw new InputError(
      `${file}: the first line has over ${mostFirstLine} characters; is the format right?`,
    );
  if (delimiter === blanks) return blankCellsOf(line);
  if (escapes) return escapedCellsOf(line, delimiter);
  try {
    return (parseCsv(line, { delimiter, relax_quotes: true }) as string[][])[0] ?? [];
  } catch (cause) {
    throw new InputError(`${file}: the first line is not CSV; is the format right?`, { cause });
  }
}

const withoutQuotes = `arrayMap(cell -> trim(BOTH '"' FROM cell), split)`;

function splitCells(select: string, delimiter: string): string {
  return `SELECT *, splitByChar(${quoted(delimiter)}, record) AS split FROM (${select})`;
}

/** What `csvCells` finds in records that are known to be simple; to look at each again takes 0.2 us. */
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
  // A blank that separates cells is none beside one.
  const blank = ' \\t'.replace(delimiter === '\t' ? '\\t' : delimiter, '');
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
