import { type EventField, eventFields } from '../../catalog/events.ts';
import {
  type CheckedExpression,
  type ColumnText,
  type Condition,
  computeExpressions,
  conditionOf,
  rulesOfExpression,
} from './expressions.ts';
import { quoted } from './sql.ts';
import type { Rule } from './values.ts';

/** Which column, constant or expression each field of an event is read from. */
export interface Mapping {
  /** Names of the columns that fields and the condition are read from, each once. */
  readonly columns: readonly string[];
  /** The text of a field, of type String; undefined where nothing gives it. */
  readonly textOf: (field: EventField, columnText: ColumnText) => string | undefined;
  /** The one column that a field is read from as it is; undefined for a constant, an expression or nothing. */
  readonly columnOf: (field: EventField) => string | undefined;
  /** Adds what expressions come to to the columns of a SELECT in which `columnText` holds. */
  readonly compute: (select: string, columnText: ColumnText) => string;
  /** What must hold for the expression of a field to have a result; of computed columns. */
  readonly rulesOf: (field: EventField) => readonly Rule[];
  /** Absent: every record is to be an event. */
  readonly condition?: Condition;
}

/** What a field is read from; `place` is where that was said, such as `--map spend` or `google-ads.json: map.spend`. */
export type FieldSource =
  | { readonly kind: 'column'; readonly column: string; readonly place: string }
  | { readonly kind: 'constant'; readonly text: string; readonly place: string }
  | { readonly kind: 'expression'; readonly expression: string; readonly place: string };

/** What the flags and the mapping file say, not yet held against an engine or a file. */
export interface MappingSpec {
  readonly sources: ReadonlyMap<EventField, FieldSource>;
  /** The condition that records are left out by. */
  readonly where?: { readonly expression: string; readonly place: string };
  /** IANA zone of times that name none; absent: UTC. */
  readonly timezone?: { readonly name: string; readonly place: string };
  /** Absent: the format's own. */
  readonly delimiter?: string;
  /** Cells have backslash escapes and no quotes. */
  readonly escapes: boolean;
  /** Without a header columns are called 1, 2, … */
  readonly header: boolean;
  /** Lines before the header, or before the first record. */
  readonly skipLines: number;
  /** JSON: the members that lead to the array of records. */
  readonly records: readonly string[];
  readonly ignoreUnknown: boolean;
  readonly roundMoney: boolean;
}

/** A mapping that the engine can run. */
export interface ValidMapping extends MappingSpec {
  readonly expressions: ReadonlyMap<EventField, CheckedExpression>;
  /** Of `where`. */
  readonly condition?: CheckedExpression;
}

/** What a mapping asks for is not there or cannot be; the message names the place and says what to do. */
export class MappingError extends Error {}

export const defaultMapping: ValidMapping = {
  sources: new Map(),
  escapes: false,
  header: true,
  skipLines: 0,
  records: [],
  ignoreUnknown: false,
  roundMoney: false,
  expressions: new Map(),
};

/** Fields are columns of the same name. @param columns of the file; absent: any, as in NDJSON */
export function sameNames(columns?: readonly string[]): Mapping {
  return compileMapping(defaultMapping, columns);
}

/**
 * Fields that the mapping does not name are read from the column of their own name, if there is one.
 * @param columns of the file; absent: any, as in NDJSON
 * @param file that has these columns, for the message
 * @throws {MappingError} for a column that is not in the file
 */
export function compileMapping(
  { sources, expressions, where, condition, roundMoney }: ValidMapping,
  columns?: readonly string[],
  file = 'the file',
): Mapping {
  const columnOf = (field: EventField): string | undefined => {
    const source = sources.get(field);
    if (source) return source.kind === 'column' ? source.column : undefined;
    return (columns?.includes(field) ?? true) ? field : undefined;
  };
  for (const name of condition?.columns ?? []) {
    if (where && columns) requireColumn(name, columns, file, where.place);
  }
  const used = new Set<string>(condition?.columns);
  for (const field of eventFields) {
    const source = sources.get(field);
    const column = columnOf(field);
    const names = expressions.get(field)?.columns ?? (column === undefined ? [] : [column]);
    for (const name of names) {
      if (source && columns) requireColumn(name, columns, file, source.place);
      used.add(name);
    }
  }
  const all = new Map<string, CheckedExpression>(expressions);
  if (condition) all.set('where', condition);
  return {
    columns: [...used],
    columnOf,
    textOf: (field, columnText) => {
      const source = sources.get(field);
      if (source?.kind === 'constant') return quoted(source.text);
      if (source?.kind === 'expression') return `e_${field}`;
      const column = columnOf(field);
      return column === undefined ? undefined : columnText(column);
    },
    compute: (select, columnText) => computeExpressions(all, select, columnText, roundMoney),
    rulesOf: (field) => {
      const expression = expressions.get(field);
      return expression ? rulesOfExpression(field, expression) : [];
    },
    ...(condition && { condition: conditionOf('where', condition) }),
  };
}

function requireColumn(name: string, columns: readonly string[], file: string, place: string): void {
  if (columns.includes(name)) return;
  const shown = columns.slice(0, 20).join(', ') + (columns.length > 20 ? ', …' : '');
  throw new MappingError(`${place}: there is no column ${name}; ${file} has ${shown}`);
}

/**
 * What of a mapping decides what the events of a file are, in one canonical form; '' where it is as without a
 * mapping. It is part of the identity of a chunk.
 */
export function mappingFingerprint({
  sources,
  where,
  timezone,
  delimiter,
  escapes,
  header,
}: MappingSpec): string {
  const fields = eventFields.flatMap((field) => {
    const source = sources.get(field);
    if (!source) return [];
    if (source.kind === 'constant') return [[field, 'set', source.text]];
    if (source.kind === 'expression') return [[field, 'expression', source.expression.trim()]];
    return source.column === field ? [] : [[field, 'map', source.column]];
  });
  const rest = {
    ...(fields.length > 0 && { fields }),
    ...(where && { where: where.expression.trim() }),
    ...(timezone && timezone.name !== 'UTC' && { timezone: timezone.name }),
    ...(delimiter !== undefined && delimiter !== ',' && { delimiter }),
    ...(escapes && { escapes }),
    ...(!header && { header }),
  };
  return Object.keys(rest).length > 0 ? JSON.stringify(rest) : '';
}
