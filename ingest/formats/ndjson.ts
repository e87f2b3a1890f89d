import { type EventField, eventFields, fieldSpecs } from '../../catalog/events.ts';
import type { Framing } from '../chunks/framed-records.ts';
import { openText } from '../chunks/text-chunks.ts';
import type { ColumnText } from '../event/expressions.ts';
import type { Mapping } from '../event/mapping.ts';
import { mapped, type RecordSource } from '../event/record-source.ts';
import { matches, quoted } from '../event/sql.ts';
import type { Rule } from '../event/values.ts';
import { InputError } from '../input/input-error.ts';
import { membersOf } from '../input/json-records.ts';
import type { Format } from './format.ts';
import { records, unreadable } from './text-records.ts';

/** An object on each line, or an array of objects. */
export const ndjson: Format = {
  name: 'ndjson',
  endings: ['ndjson', 'jsonl', 'json'],
  clickhouse: 'JSONEachRow',
  text: {},
  open: (input, options) =>
    openText(input, options, {
      header: false,
      records: options.reading.records,
      readerOf: (line) => {
        const { mappingOf, ignoreUnknown } = options.reading;
        const mapping = mappingOf();
        refuseAnswer(input.name, line, mapping);
        return (framing) => jsonSource(framing, mapping, ignoreUnknown);
      },
    }),
};

/** @throws {InputError} for a record that gives no field but has an array, which is most likely that of the records */
function refuseAnswer(file: string, line: string, { columns }: Mapping): void {
  const { names, arrays } = membersOf(Buffer.from(line.slice(0, 64 << 10)));
  const [array] = arrays;
  if (array === undefined || names.some((name) => columns.includes(name))) return;
  throw new InputError(
    `${file}: the first record has nothing that an event is read from, but an array: --records ${array} reads its elements`,
  );
}

/** How a record becomes fields. */
export function jsonSource(framing: Framing, mapping: Mapping, ignoreUnknown: boolean): RecordSource {
  const names = mapping.columns;
  const element = (name: string) => {
    const n = names.indexOf(name);
    return n < 0 ? undefined : `texts[at_${n}]`;
  };
  // Counts have no more digits than a double keeps, ids no fractions: only money is worth the second look, and what an
  // expression may make money of.
  const asTheyAre = eventFields.filter((field) => fieldSpecs[field].kind !== 'money');
  const exact = new Set(names.filter((name) => !asTheyAre.some((field) => mapping.columnOf(field) === name)));
  const columnText: ColumnText = (name) => {
    const text = element(name);
    return text && exact.has(name) ? exactText(name, text) : text;
  };
  const places = names.map((name, n) => `indexOf(keys, ${quoted(name)}) AS at_${n}`);
  // Keys are only looked at where there are more of them than were found.
  const found = ['0', ...names.map((_, n) => `(at_${n} > 0)`)].join(' + ');
  const known = `(${[...new Set([...names, ...eventFields])].map(quoted).join(', ')})`;
  const unwanted = ignoreUnknown ? `name IN ${known} AND nth > 1` : `name NOT IN ${known} OR nth > 1`;
  const unknown = `if(length(keys) = ${found}, emptyArrayString(), arrayFilter((name, nth) -> ${unwanted}, keys, arrayEnumerateUniq(keys)))`;
  return {
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    // A map of all keys takes half the time of a tuple of those that are read, and tells which others there are.
    select: mapping.compute(
      `SELECT *, ${unknown} AS unknown FROM (
      SELECT ${['at_line', 'record', 'keys', 'texts', ...places].join(', ')} FROM (
      SELECT at_line, record, mapKeys(json) AS keys, mapValues(json) AS texts FROM (
      SELECT at_line, record, JSONExtract(record, 'Map(String, String)') AS json FROM (${records(framing)}))))`,
      columnText,
    ),
    textOf: mapped(mapping, columnText),
    typedOf: () => undefined,
    rules: [
      // What is not UTF-8, or holds a NUL, is not JSON either.
      ...unreadable.map(({ broken, reason }) => ({ broken: `empty(keys) AND ${broken}`, reason })),
      {
        broken: 'empty(keys) AND NOT isValidJSON(record)',
        reason: 'the record is not JSON',
      },
      {
        broken: `NOT startsWith(record, '{') AND NOT ${matches('record', '^\\s*\\{')}`,
        reason: 'the record is not a JSON object',
      },
    ],
    textRules: (field) => {
      const key = mapping.columnOf(field);
      const { kind } = fieldSpecs[field];
      if (key === undefined) return mapping.rulesOf(field);
      if (kind === 'money') return exactNumber(field, key);
      if (kind !== 'text') return [];
      return [
        {
          // A byte of { and one of [ differ in one bit: half the time of looking for each.
          broken: `bitOr(ascii(t_${field}), 32) = ascii('{') AND JSONType(record, ${quoted(key)}) IN ('Object', 'Array')`,
          reason: 'must be text, not an object or a list',
        },
      ];
    },
    raw: 'record',
    columns: mapping.columns,
    condition: mapping.condition,
  };
}

/** Whether a number of a record may have more digits than a double holds; as a double it would come out altered. */
function isLong(key: string, text: string): string {
  // Most long texts are times and ids; JSONType would read the whole record for each of them.
  const manyDigits = `length(${text}) > 15 AND ${matches(text, '^-?[0-9][0-9.eE+-]*$')}`;
  // 999999999999.999999 is read as 1000000000000: as text a rounded number is short again.
  const large = `abs(toFloat64OrZero(${text})) >= 1000000000`;
  return `length(${text}) > 9 AND (${manyDigits} OR ${large}) AND JSONType(record, ${quoted(key)}) = 'Double'`;
}

/** The digits of a number as they are written. */
function digits(key: string): string {
  const name = key.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
  return `extract(record, ${quoted(`"${name}"\\s*:\\s*(-?[0-9][0-9.eE+-]*)`)})`;
}

function exactText(key: string, text: string): string {
  return `if(${isLong(key, text)}, ${digits(key)}, ${text})`;
}

/** What was found by its digits must be the number that the key has. */
function exactNumber(field: EventField, key: string): Rule[] {
  const text = `t_${field}`;
  return [
    {
      broken: `${isLong(key, text)} AND toFloat64OrZero(${digits(key)}) != JSONExtractFloat(record, ${quoted(key)})`,
      reason: 'has more digits than a JSON number keeps: write it in quotes',
    },
  ];
}
