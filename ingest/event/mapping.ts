import { type EventField, eventFields, fieldSpecs } from '../../catalog/events.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { shownName, shownNames, suggestion } from '../input/similar-names.ts';
import {
  type CheckedExpression,
  type ColumnText,
  computeExpressions,
  conditionOf,
  rulesOfExpression,
} from './expressions.ts';
import { type EventMapping, numberedEvents, severalEvents } from './several-events.ts';
import type { SheetDates } from './values.ts';

/** Which column, constant or expression each field of an event is read from. */
export interface Mapping extends EventMapping {
  /** Of the columns those which the mapping names, and where it does. */
  readonly required: ReadonlyMap<string, string>;
  /** Adds what expressions come to to the columns of a SELECT in which `columnText` holds, and numbers several events. */
  readonly compute: (select: string, columnText: ColumnText) => string;
  /** How many events a record is. */
  readonly events: number;
}

/** What a field is read from. */
export interface FieldSource {
  readonly kind: 'column' | 'constant' | 'expression';
  /** The name of the column, the constant, or the expression. */
  readonly text: string;
  /** Where that was said, such as `--map spend` or `google-ads.json: map.spend`. */
  readonly place: string;
}

/** How a record becomes an event. */
export interface EventSpec {
  readonly sources: ReadonlyMap<EventField, FieldSource>;
  /** The condition that records are left out by. */
  readonly where?: { readonly expression: string; readonly place: string };
}

/** How a file is written, as far as it does not show. */
export interface FileLayout {
  /** How the text is encoded, by the name of TextDecoder; absent: Unicode, which is seen. */
  readonly encoding?: string;
  /** Between the cells of CSV and TSV, one byte, or `blanks`; absent: the format's own. */
  readonly delimiter?: string;
  /** Cells have backslash escapes and no quotes, as databases dump them. */
  readonly escapes: boolean;
  /** CSV and TSV: the first line names the columns; without it they are called 1, 2, … */
  readonly header: boolean;
  /** Lines before the header, or before the first record. */
  readonly skipLines: number;
  /** JSON: the members that lead to the array of records; none where the text is the array, or has a record a line. */
  readonly records: readonly string[];
  /** Fields that no event has are left out instead of being a fault. */
  readonly ignoreUnknown: boolean;
}

/** What the flags and the mapping file say, not yet held against an engine or a file. */
export interface MappingSpec extends EventSpec, FileLayout {
  /** How a record becomes several events, with what is said for all of them; absent: it is one. */
  readonly events?: readonly EventSpec[];
  /** IANA zone of times that name none; absent: UTC. */
  readonly timezone?: { readonly name: string; readonly place: string };
  /** How the numbers among times are serial dates of a sheet; absent: they are not. */
  readonly dates?: SheetDates;
  /** JSON: columns that no record of a file need have. */
  readonly optional: readonly string[];
  readonly roundMoney: boolean;
}

export interface ValidEvent extends EventSpec {
  readonly expressions: ReadonlyMap<EventField, CheckedExpression>;
  /** Of `where`. */
  readonly condition?: CheckedExpression;
}

/** A mapping that the engine can run. */
export interface ValidMapping extends MappingSpec, ValidEvent {
  readonly events?: readonly ValidEvent[];
}

/** What a mapping asks for is not there or cannot be; the message names the place and says what to do. */
export class MappingError extends Error {}

export const defaultMapping: ValidMapping = {
  sources: new Map(),
  escapes: false,
  header: true,
  skipLines: 0,
  records: [],
  optional: [],
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
export function compileMapping(valid: ValidMapping, columns?: readonly string[], file = 'the file'): Mapping {
  const events = (valid.events ?? [valid]).map((event, n) => compileEvent(event, n, columns));
  const required = new Map(events.flatMap((event) => [...event.required]));
  if (columns) for (const [name, place] of required) requireColumn(name, columns, file, place);
  else for (const name of valid.optional) required.delete(name);
  const all = new Map(events.flatMap(({ computed }) => [...computed]));
  const compute = (select: string, columnText: ColumnText) =>
    computeExpressions(all, select, (name) => columnText(nameIn(columns, name)), valid.roundMoney);
  const [first] = events;
  if (events.length === 1 && first) return { ...first, required, events: 1, compute };
  return {
    ...severalEvents(events),
    required,
    compute: (...given) => numberedEvents(compute(...given), events.length),
  };
}

/** The column that an expression names. Blanks at its ends are those of the braces, where the file has no such column. */
function nameIn(columns: readonly string[] | undefined, name: string): string {
  return columns?.includes(name) ? name : name.trim();
}

interface CompiledEvent extends EventMapping {
  readonly required: ReadonlyMap<string, string>;
  /** Expressions, by the names of their results. */
  readonly computed: ReadonlyMap<string, CheckedExpression>;
}

function compileEvent(
  { sources, expressions, where, condition }: ValidEvent,
  n: number,
  columns?: readonly string[],
): CompiledEvent {
  const nameOf = (what: string) => (n === 0 ? what : `${what}_${n + 1}`);
  const columnOf = (field: EventField): string | undefined => {
    const source = sources.get(field);
    if (source) return source.kind === 'column' ? source.text : undefined;
    return (columns?.includes(field) ?? true) ? field : undefined;
  };
  const required = new Map<string, string>();
  const readBy = (expression: CheckedExpression) => expression.columns.map((name) => nameIn(columns, name));
  const conditionReads = condition ? readBy(condition) : [];
  const used = new Set<string>(conditionReads);
  for (const name of conditionReads) if (where) required.set(name, where.place);
  for (const field of eventFields) {
    const source = sources.get(field);
    const column = columnOf(field);
    const expression = expressions.get(field);
    for (const name of expression ? readBy(expression) : column === undefined ? [] : [column]) {
      if (source) required.set(name, source.place);
      used.add(name);
    }
  }
  const computed = new Map([...expressions].map(([field, expression]) => [nameOf(field), expression]));
  if (condition) computed.set(nameOf('where'), condition);
  return {
    columns: [...used],
    required,
    computed,
    columnsOf: (field) => {
      const column = columnOf(field);
      return column === undefined ? [] : [{ column }];
    },
    textOf: (field, columnText) => {
      const source = sources.get(field);
      if (source?.kind === 'constant') return quoted(source.text);
      if (source?.kind === 'expression') return `e_${nameOf(field)}`;
      const column = columnOf(field);
      return column === undefined ? undefined : columnText(column);
    },
    rulesOf: (field) => {
      const expression = expressions.get(field);
      if (!expression) return [];
      return rulesOfExpression(nameOf(field), expression, fieldSpecs[field].kind === 'text');
    },
    ...(condition && { condition: { ...conditionOf(nameOf('where'), condition), columns: conditionReads } }),
  };
}

function requireColumn(name: string, columns: readonly string[], file: string, place: string): void {
  if (columns.includes(name)) return;
  throw new MappingError(
    `${place}: there is no column ${shownName(name)}; ${file} has ${shownNames(columns)}${suggestion(name, columns)}`,
  );
}

/**
 * What of a mapping decides what the events of a file are, in one canonical form; '' where it is as without a
 * mapping. It is part of the identity of a chunk.
 */
export function mappingFingerprint(spec: MappingSpec): string {
  const { timezone, dates, delimiter, escapes, header } = spec;
  const rest = {
    ...(spec.events ? { events: spec.events.map(fingerprintOfEvent) } : fingerprintOfEvent(spec)),
    ...(timezone && timezone.name !== 'UTC' && { timezone: timezone.name }),
    ...(dates && { dates }),
    ...(delimiter !== undefined && delimiter !== ',' && { delimiter }),
    ...(escapes && { escapes }),
    ...(!header && { header }),
  };
  return Object.keys(rest).length > 0 ? JSON.stringify(rest) : '';
}

function fingerprintOfEvent({ sources, where }: EventSpec) {
  const fields = eventFields.flatMap((field) => {
    const source = sources.get(field);
    if (!source) return [];
    const { kind, text } = source;
    if (kind === 'constant') return [[field, 'set', text]];
    if (kind === 'expression') return [[field, kind, text.trim()]];
    return text === field ? [] : [[field, 'map', text]];
  });
  return {
    ...(fields.length > 0 && { fields }),
    ...(where && { where: where.expression.trim() }),
  };
}
