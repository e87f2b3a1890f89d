import type { Framing } from '../chunks/framed-records.ts';
import type { ColumnText } from '../event/expressions.ts';
import type { FileReading } from '../event/reading.ts';
import type { RecordSource } from '../event/record-source.ts';
import type { Rule } from '../event/values.ts';
import { InputError } from '../input/input-error.ts';
import { hint } from '../input/option-hint.ts';
import { shownName } from '../input/similar-names.ts';
import { records, structureOf, unreadable } from './text-records.ts';

/** How a format takes records apart. */
export interface CellRules {
  /** Adds `cells` to a SELECT of records; none, or one that breaks a rule, where a record is broken. */
  readonly cells: (records: string) => string;
  readonly rules: readonly Rule[];
}

/**
 * How records become fields that are cells in the order of the first line.
 * @throws {InputError} when the columns do not fit
 */
export function cellsReader(
  file: string,
  reading: FileReading,
  firstLine: readonly string[],
): (framing: Framing, rules: CellRules) => RecordSource {
  const columns = columnsOf(file, reading, firstLine);
  const mapping = reading.mappingOf(columns);
  const columnText: ColumnText = (name) => {
    const n = columns.indexOf(name);
    return n < 0 ? undefined : `texts[${n + 1}]`;
  };
  const { condition } = mapping;
  // Below a table may stand what is no record, such as a copyright. A cell that is missing may be any but the first.
  const tells = condition?.columns.every((name) => columns.indexOf(name) === 0) ? condition.holds : 'true';
  const wanted = columns.length;
  return (framing, { cells, rules }) => ({
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    select: mapping.compute(
      `SELECT *, ${textsOf('cells')} AS texts, emptyArrayString() AS unknown FROM (${cells(records(framing))})`,
      columnText,
    ),
    structure: structureOf(framing),
    textOf: (field) => mapping.textOf(field, columnText),
    rules: [
      ...unreadable,
      ...rules,
      {
        // Delimiters at the end of a record hold nothing.
        broken: `length(cells) != ${wanted} AND notEmpty(cells) AND if(length(cells) < ${wanted}, ${tells}, arrayExists(cell -> cell != '', arraySlice(cells, ${wanted + 1})))`,
        reason: `the record must have as many cells as the header, ${wanted}`,
        shown: 'toString(length(cells))',
      },
    ],
    textRules: mapping.rulesOf,
    raw: 'record',
    columns: mapping.columns,
    events: mapping.events,
    condition,
  });
}

/** The names of the columns; without a header 1, 2, … @throws {InputError} for a line that names none */
function columnsOf(file: string, { header }: FileReading, cells: readonly string[]): readonly string[] {
  if (!header) return cells.map((_, n) => `${n + 1}`);
  requireNamedOnce(file, cells);
  return cells;
}

/** @throws {InputError} for a name that two columns have */
export function requireNamedOnce(file: string, names: readonly string[]): void {
  const seen = new Set<string>();
  const twice = names.find((name) => name !== '' && seen.size === seen.add(name).size);
  if (twice === undefined) return;
  const advice = hint('--no-header', '"header": false in a mapping', 'reads the first line as a record');
  throw new InputError(`${file}: column ${shownName(twice)} appears twice${advice}`);
}

/** Databases write \N for NULL, with or without quotes: no text. To look for it in each cell takes twice as long. */
function textsOf(cells: string): string {
  return `if(position(record, '\\\\N') = 0, ${cells}, arrayMap(cell -> if(cell = '\\\\N', '', cell), ${cells}))`;
}
