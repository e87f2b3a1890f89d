import {
  countFields,
  type EventField,
  eventColumns,
  eventFields,
  eventTypeOf,
  fieldSpecs,
} from '../../catalog/events.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { optionHint } from '../input/option-hint.ts';
import type { Condition } from './expressions.ts';
import { MappingError } from './mapping.ts';
import { lineBits } from './record-place.ts';
import type { RecordSource } from './record-source.ts';
import { sideRules } from './rules.ts';
import { eventNumber } from './several-events.ts';
import { readTyped } from './typed-values.ts';
import {
  isDay,
  type Reading,
  type ReadingOptions,
  type Rule,
  readNothing,
  readText,
  timeRange,
} from './values.ts';

export interface JudgeOptions extends ReadingOptions {
  /** --dedupe goes by event ids. */
  readonly requireEventId: boolean;
}

/** A rule and whose field it is of; the field is empty where it is of the whole record. */
interface FieldRule extends Rule {
  readonly field: EventField | '';
}

/** Said of a member that no event has. */
export const unknownField = `is not a field of an event${optionHint('ignore_unknown', 'leaves it out', true)}`;

/** Columns of `incoming` that a judged record has. */
export const judgedColumns = [
  ...eventColumns,
  'chunk',
  'loaded_at',
  'load_id',
  'file',
  'line',
  'faults',
  'raw',
  'fields',
] as const;

/** Columns of `incoming_staging` that one has which a condition may leave out. */
export const heldColumns = [...judgedColumns, 'left_out'] as const;

/** Where a record is from, as SQL. */
export interface Origin {
  readonly chunk: string;
  readonly loadTime: string;
  readonly loadId: string;
  readonly file: string;
  readonly line: string;
}

const oneChunk: Origin = {
  chunk: '{chunk:String}',
  loadTime: "{loadTime:DateTime64(6, 'UTC')}",
  loadId: '{loadId:String}',
  file: '{file:String}',
  line: 'toUInt64(at_line)',
};

/**
 * The SELECT that judges records: each comes out with the columns of `incoming`; with no faults it is an event. It
 * is the only judge of a value, whatever the format, and never throws because of one. Where the source has a condition
 * there is one column more, `left_out`: such a record has no faults, and is no event.
 *
 * Four layers, each by the aliases of the one below: the text of each field, what is computed of it once, its value and
 * broken rules, the row.
 * Parameters: `chunk`, `loadTime`, `loadId`, `file`, and those of the source.
 * @param origin where the records are from; absent: one chunk
 */
export function judgeRecords(source: RecordSource, options: JudgeOptions, origin = oneChunk): string {
  const readings = Object.fromEntries(
    eventFields.map((field) => [field, readingOf(field, source, options)]),
  ) as Record<EventField, Reading>;
  const rules = rulesOf(source, readings, options);
  const { condition } = source;
  const computed = Object.values(readings).flatMap((reading) => reading.computed ?? []);
  return `SELECT ${eventColumns.map((name) => `v_${name} AS ${name}`).join(', ')},
  ${origin.chunk} AS chunk, ${origin.loadTime} AS loaded_at, ${origin.loadId} AS load_id, ${origin.file} AS file,
  ${source.events === 1 ? origin.line : `${origin.line} + bitShiftLeft(toUInt64(${eventNumber}), ${lineBits})`} AS line,
  if(broken = 0 AND empty(unknown), [], ${faults(rules, source.columns)})::Array(Tuple(field String, reason String)) AS faults,
  if(broken = 0 AND empty(unknown), '', ${source.raw}) AS raw,
  if(broken = 0 AND empty(unknown), map(), ${fieldTexts(source)})::Map(String, String) AS fields${condition ? ', is_left_out AS left_out' : ''}
FROM (
  SELECT *, ${eventColumns.map((name) => `${columnValue(name, readings)} AS v_${name}`).join(',\n    ')},
    ${brokenRules(rules, condition)} AS broken${condition ? `, unreadable = 0 AND empty(unknown) AND NOT ${condition.holds} AS is_left_out` : ''}
  FROM (
    SELECT ${['*', ...computed.map(({ name, sql }) => `${sql} AS ${name}`)].join(',\n      ')}
    FROM (
      SELECT *, ${eventFields.map((field) => `${textOf(field, source)} AS t_${field}`).join(',\n        ')}
      FROM (${source.select})
    )
  )
)`;
}

/** The text of a field, to be shown and corrected; values of a file are only made text where that is needed. */
function textOf(field: EventField, source: RecordSource): string {
  const typed = source.typedOf?.(field);
  if (typed) return `ifNull(toString(${typed.column}), '')`;
  // Blanks around an id are part of it; around a number they are not.
  const text = source.textOf(field);
  if (text === undefined) return "''";
  return fieldSpecs[field].kind === 'text' ? text : `trim(BOTH ' \\t' FROM ${text})`;
}

function readingOf(field: EventField, source: RecordSource, options: JudgeOptions): Reading {
  const spec = fieldSpecs[field];
  const typed = source.typedOf?.(field);
  if (typed) return readTyped(typed.kind, spec, typed.column);
  return source.textOf(field) === undefined ? readNothing(spec) : readText(spec, `t_${field}`, options);
}

/** The value of a column of `events`: a count is its own field, or the quantity of its event type. */
function columnValue(name: EventField, readings: Readonly<Record<EventField, Reading>>): string {
  const { value } = readings[name];
  const count = countFields.find((field) => field === name);
  if (name === 'device') return `if(${value} = '', 'unknown', ${value})`;
  if (!count) return value;
  // Not by `if`, under which the costly half of a count would run for every record.
  const quantity = `(${readings.quantity.value} + (NOT ${readings.quantity.given}))`;
  return `${value} + (t_event_type = ${quoted(eventTypeOf[count])}) * ${quantity}`;
}

/**
 * The rules that are broken, each a bit. They come as sums, because ClickHouse evaluates only one level of
 * `AND` and `if` lazily: under another one the costly half of each rule would run for every record.
 */
function brokenRules({ whole, own }: Rules, condition: Condition | undefined): string {
  if (whole.length + own.length > 64)
    throw new MappingError('the mapping has too many expressions: 64 things can be said against a record');
  // ClickHouse needs some 40 µs to analyse each function of a statement, and a written sum has three for each rule.
  const bits = (rules: readonly FieldRule[], first: number) => {
    if (rules.length === 0) return 'toUInt64(0)';
    const powers = rules.map((_, n) => 2n ** BigInt(first + n));
    return `toUInt64(dotProduct(tuple(${rules.map(({ broken }) => broken).join(',\n      ')}),
      tuple(${powers.join(', ')})))`;
  };
  // A record that cannot be read as a whole needs one reason, the first; a record that is left out needs no reason.
  const judged = condition ? `(unreadable = 0) * ${condition.holds}` : '(unreadable = 0)';
  return `bitAnd(${bits(whole, 0)} AS unreadable, bitNot(unreadable - 1)) + ${judged} * ${bits(own, whole.length)}`;
}

/** At most 64. */
interface Rules {
  readonly whole: readonly FieldRule[];
  readonly own: readonly FieldRule[];
}

const idRule: FieldRule = {
  field: 'event_id',
  broken: "t_event_id = ''",
  reason: 'is required where duplicates are skipped',
};

function rulesOf(
  source: RecordSource,
  readings: Readonly<Record<EventField, Reading>>,
  { requireEventId }: JudgeOptions,
): Rules {
  const required: FieldRule[] = [
    { field: 'event_time', broken: `NOT ${readings.event_time.given}`, reason: 'is required' },
    ...(requireEventId ? [idRule] : []),
  ];
  const own = eventFields.flatMap((field) =>
    [...readings[field].rules, ...source.textRules(field)].map((rule) => ({ ...rule, field })),
  );
  const whole = [...source.rules, ...(source.condition?.rules ?? [])].map(
    (rule): FieldRule => ({ ...rule, field: '' }),
  );
  return { whole, own: [...required, ...own, ...sideRules((field) => readings[field].given)] };
}

/** Each broken rule as (field, reason), with the text at fault; and fields that no event has. */
function faults({ whole, own }: Rules, columns: readonly string[]): string {
  const known = [...new Set([...eventFields, ...columns])].map(quoted).join(', ');
  const flat = [...whole, ...own];
  const fields = `[${flat.map(({ field }) => quoted(field)).join(', ')}]`;
  const reasons = `[${flat.map(({ reason }) => quoted(reason)).join(', ')}]`;
  const texts = `[${flat.map(({ field, shown = field ? `t_${field}` : "''" }) => shown).join(', ')}]`;
  const short = `if(lengthUTF8(text) > 80, concat(substringUTF8(text, 1, 80), '…'), text)`;
  return `arrayConcat(
    arrayMap((rule, text) -> tuple(${fields}[rule + 1], concat(${reasons}[rule + 1], if(text = '', '', concat(', not ', toJSONString(${short}))))),
      bitPositionsToArray(broken) AS rules, arrayMap(rule -> ${texts}[rule + 1], rules)),
    arrayMap(name -> tuple(name, if(name IN (${known}), 'appears twice', ${quoted(unknownField)})), unknown))`;
}

/** What is to be corrected. A time that could be read is in UTC, so that it stays the same under any options. */
function fieldTexts({ textOf }: RecordSource): string {
  const given = eventFields.filter((field) => textOf(field) !== undefined);
  const isNoTime = [timeRange('v_event_time').broken, isDay('t_event_time')];
  const time = `if(${isNoTime.join(' OR ')}, t_event_time, concat(toString(v_event_time), 'Z'))`;
  const pairs = given.map((field) => `${quoted(field)}, ${field === 'event_time' ? time : `t_${field}`}`);
  return `mapFilter((field, text) -> text != '', map(${pairs.join(', ')}))`;
}
