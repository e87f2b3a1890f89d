import { type EventField, eventFields } from './fields.ts';
import { identifier, quoted } from './sql.ts';
import type { Rule } from './values.ts';

/** The text of a column of the file, of type String; undefined where the file has no such column. */
export type ColumnText = (column: string) => string | undefined;

/** Which column, constant or expression each field of an event is read from. */
export interface Mapping {
  /** Names of the columns that fields are read from, each once. */
  readonly columns: readonly string[];
  /** The text of a field, of type String; undefined where nothing gives it. */
  readonly textOf: (field: EventField, columnText: ColumnText) => string | undefined;
  /** The one column that a field is read from as it is; undefined for a constant, an expression or nothing. */
  readonly columnOf: (field: EventField) => string | undefined;
  /** Adds what expressions come to to the columns of a SELECT in which `columnText` holds. */
  readonly compute: (select: string, columnText: ColumnText) => string;
  /** What must hold for the expression of a field to have a result; of computed columns. */
  readonly rulesOf: (field: EventField) => readonly Rule[];
}

/** What a field is read from; `place` is where that was said, such as `--map spend` or `google-ads.json: map.spend`. */
export type FieldSource =
  | { readonly kind: 'column'; readonly column: string; readonly place: string }
  | { readonly kind: 'constant'; readonly text: string; readonly place: string }
  | { readonly kind: 'expression'; readonly expression: string; readonly place: string };

/** What the flags and the mapping file say, not yet held against an engine or a file. */
export interface MappingSpec {
  readonly sources: ReadonlyMap<EventField, FieldSource>;
  /** IANA zone of times that name none; absent: UTC. */
  readonly timezone?: { readonly name: string; readonly place: string };
  /** Absent: the format's own. */
  readonly delimiter?: string;
  /** Without a header columns are called 1, 2, … */
  readonly header: boolean;
  /** Lines before the header, or before the first record. */
  readonly skipLines: number;
  readonly ignoreUnknown: boolean;
  readonly roundMoney: boolean;
}

/** An expression that the engine has checked. */
export interface CheckedExpression {
  /** SQL in which columns stand as `textName` and `numberName` call them. */
  readonly sql: string;
  /** The result as text: SQL of type Nullable(String) in which the result is `result`. */
  readonly text: string;
  readonly columns: readonly string[];
  /** Those that stand for a number somewhere. */
  readonly numbers: readonly string[];
}

/** A mapping that the engine can run. */
export interface ValidMapping extends MappingSpec {
  readonly expressions: ReadonlyMap<EventField, CheckedExpression>;
}

/** What a mapping asks for is not there or cannot be; the message names the place and says what to do. */
export class MappingError extends Error {}

export const defaultMapping: ValidMapping = {
  sources: new Map(),
  header: true,
  skipLines: 0,
  ignoreUnknown: false,
  roundMoney: false,
  expressions: new Map(),
};

/** How an expression calls the text of a column, as an identifier. */
export const textName = (column: string): string => `{${column}}`;
/** How it calls its number: Nullable(Decimal), NULL where the text is none. */
export const numberName = (column: string): string => `{${column}}#`;

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
  { sources, expressions }: ValidMapping,
  columns?: readonly string[],
  file = 'the file',
): Mapping {
  const columnOf = (field: EventField): string | undefined => {
    const source = sources.get(field);
    if (source) return source.kind === 'column' ? source.column : undefined;
    return (columns?.includes(field) ?? true) ? field : undefined;
  };
  const used = new Set<string>();
  for (const field of eventFields) {
    const source = sources.get(field);
    const column = columnOf(field);
    const names = expressions.get(field)?.columns ?? (column === undefined ? [] : [column]);
    for (const name of names) {
      if (source && columns) requireColumn(name, columns, file, source.place);
      used.add(name);
    }
  }
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
    compute: (select, columnText) => compute(expressions, select, columnText),
    rulesOf: (field) => {
      const expression = expressions.get(field);
      if (!expression) return [];
      const { columns, numbers } = expression;
      return [
        ...(numbers.length > 0
          ? [{ broken: `n_${field}`, reason: `must be computed from numbers, and ${oneOf(numbers)} is none` }]
          : []),
        {
          broken: `b_${field} AND NOT n_${field}`,
          reason: `cannot be computed from ${columns.map(textName).join(', ')}`,
        },
      ];
    },
  };
}

function oneOf(names: readonly string[]): string {
  return names.map(textName).join(' or ');
}

function requireColumn(name: string, columns: readonly string[], file: string, place: string): void {
  if (columns.includes(name)) return;
  const shown = columns.slice(0, 20).join(', ') + (columns.length > 20 ? ', …' : '');
  throw new MappingError(`${place}: there is no column ${name}; ${file} has ${shown}`);
}

/**
 * Two layers, so that an expression runs as it was checked: columns by their names, then of each expression its text
 * (`e_`), whether a number is none (`n_`), and whether it has no result although it was given something (`b_`).
 */
function compute(
  expressions: ReadonlyMap<EventField, CheckedExpression>,
  select: string,
  columnText: ColumnText,
): string {
  if (expressions.size === 0) return select;
  const all = [...expressions.values()];
  const columns = [...new Set(all.flatMap(({ columns }) => columns))];
  const numbers = [...new Set(all.flatMap(({ numbers }) => numbers))];
  const inputs = [
    ...columns.map((name) => `${columnText(name) ?? "''"} AS ${identifier(textName(name))}`),
    ...numbers.map((name) => `${numberOf(identifier(textName(name)))} AS ${identifier(numberName(name))}`),
  ];
  const results = [...expressions].flatMap(([field, { sql, text, columns, numbers }]) => {
    const given = columns.map((name) => `${identifier(textName(name))} != ''`);
    const noNumber = numbers.map(
      (name) => `isNull(${identifier(numberName(name))}) AND trim(${identifier(textName(name))}) != ''`,
    );
    const result = `r_${field}`;
    return [
      `(${sql}\n) AS ${result}`,
      `ifNull(${text.replaceAll('result', result)}, '') AS e_${field}`,
      `${noNumber.length > 0 ? noNumber.map((each) => `(${each})`).join(' OR ') : 'false'} AS n_${field}`,
      `isNull(${result}) AND (${given.length > 0 ? given.join(' OR ') : 'true'}) AS b_${field}`,
    ];
  });
  return `SELECT *, ${results.join(',\n    ')} FROM (SELECT *, ${inputs.join(', ')} FROM (${select}))`;
}

const number = '^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]{1,3})?$';

/**
 * The number in a text: Nullable(Decimal) of 12 places, so that nothing is lost as it would be in a float; NULL where
 * it is no number or has more than 15 digits before the point, so that products of two do not overflow.
 */
export function numberOf(text: string): string {
  const decimal = `toDecimal256OrNull(trim(${text}), 12)`;
  return `if(match(trim(${text}), ${quoted(number)}) AND abs(${decimal}) < 1000000000000000, ${decimal}, NULL)`;
}

/**
 * What of a mapping decides what the events of a file are, in one canonical form; '' where it is as without a
 * mapping. It is part of the identity of a chunk.
 */
export function mappingFingerprint({ sources, timezone, delimiter, header }: MappingSpec): string {
  const fields = eventFields.flatMap((field) => {
    const source = sources.get(field);
    if (!source) return [];
    if (source.kind === 'constant') return [[field, 'set', source.text]];
    if (source.kind === 'expression') return [[field, 'expression', source.expression.trim()]];
    return source.column === field ? [] : [[field, 'map', source.column]];
  });
  const rest = {
    ...(fields.length > 0 && { fields }),
    ...(timezone && timezone.name !== 'UTC' && { timezone: timezone.name }),
    ...(delimiter !== undefined && delimiter !== ',' && { delimiter }),
    ...(!header && { header }),
  };
  return Object.keys(rest).length > 0 ? JSON.stringify(rest) : '';
}
