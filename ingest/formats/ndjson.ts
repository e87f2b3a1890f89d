import { eventFields, fieldSpecs } from '../../catalog/events.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import type { Framing } from '../chunks/framed-records.ts';
import type { OpenInput, ReadOptions } from '../chunks/sendable-chunk.ts';
import { openText } from '../chunks/text-chunks.ts';
import type { ColumnText } from '../event/expressions.ts';
import { type Mapping, MappingError } from '../event/mapping.ts';
import type { RecordSource } from '../event/record-source.ts';
import { matches } from '../event/sql.ts';
import type { Input } from '../input/input.ts';
import { InputError } from '../input/input-error.ts';
import { firstObject } from '../input/json-records.ts';
import { optionHint } from '../input/option-hint.ts';
import { suggestion } from '../input/similar-names.ts';
import type { Format } from './format.ts';
import { headsOf, Member, namesIn, waysTo } from './json-members.ts';
import { NamesInText } from './names-in-text.ts';
import { records, structureOf, unreadable } from './text-records.ts';

/** An object on each line, or an array of objects. */
export const ndjson: Format = {
  name: 'ndjson',
  endings: ['ndjson', 'jsonl', 'json'],
  mediaTypes: ['application/x-ndjson', 'application/ndjson', 'application/jsonl', 'application/json'],
  clickhouse: 'JSONEachRow',
  text: {},
  open,
};

async function open(input: Input, options: ReadOptions): Promise<OpenInput> {
  const { mappingOf, ignoreUnknown, records, channel, warn } = options.reading;
  const mapping = mappingOf();
  const { required } = mapping;
  const seen = new NamesInText(new Map([...required.keys()].map((name) => [name, waysTo(name)])));
  let first = '';
  const opened = await openText(input, options, {
    header: false,
    records,
    onText: (bytes) => seen.read(bytes),
    readerOf: (line) => {
      // To list the members of a record of 11 MiB takes 28 s, in which a service does nothing else.
      first = line.slice(0, 64 << 10);
      const members = firstObject(Buffer.from(first));
      // A piece may begin with any record of its channel.
      if (!channel) refuseAnswer(input.name, members, mapping);
      options.reading.warnOfColumns(members.names);
      return (framing) => sharedSource(framing, mapping, ignoreUnknown);
    },
  });
  const missing = (name: string) =>
    `${required.get(name)}: no record of ${input.name} has ${name}${suggestion(name, namesIn(first)) || '.'} If a file may be without it, say so in a mapping file: "optional": [${JSON.stringify(name)}]`;
  return {
    ...opened,
    chunks: async function* (known) {
      let chunks = 0;
      for await (const chunk of opened.chunks(known)) {
        const isFirst = chunks++ === 0;
        const [name] = isFirst && seen.ended ? seen.unseen : [];
        if (name !== undefined && !channel) throw new MappingError(missing(name));
        yield chunk;
      }
      // Of a file of several chunks the first has been sent when it is known.
      for (const name of seen.unseen) if (chunks > 1) warn(missing(name));
    },
  };
}

/** @throws {InputError} for a record that gives no field but has an array, which is most likely that of the records */
function refuseAnswer(
  file: string,
  { names, arrays: [array] }: ReturnType<typeof firstObject>,
  { columns }: Mapping,
): void {
  const read = [...columns, ...headsOf(columns)];
  if (array === undefined || names.some((name) => read.includes(name))) return;
  throw new InputError(
    `${file}: the first record has nothing that an event is read from, but an array${optionHint('records', 'reads its elements', array)}`,
  );
}

const sources = new WeakMap<Mapping, Map<string, RecordSource>>();

/** The same as `jsonSource`, once for all that is read alike. */
function sharedSource(framing: Framing, mapping: Mapping, ignoreUnknown: boolean): RecordSource {
  const known = sources.get(mapping) ?? new Map<string, RecordSource>();
  const how = `${framing} ${ignoreUnknown}`;
  const source = known.get(how) ?? jsonSource(framing, mapping, ignoreUnknown);
  sources.set(mapping, known.set(how, source));
  return source;
}

/** How a record becomes fields. */
export function jsonSource(framing: Framing, mapping: Mapping, ignoreUnknown: boolean): RecordSource {
  const members = new Map(mapping.columns.map((name, n) => [name, new Member(name, n)]));
  const names = [...new Set([...mapping.columns, ...headsOf(mapping.columns)])];
  // Counts have no more digits than a double keeps, ids no fractions: only money is worth the second look, and what an
  // expression may make money of.
  const isReadBy = (name: string, isMoney: boolean) =>
    eventFields.some(
      (field) =>
        (fieldSpecs[field].kind === 'money') === isMoney &&
        mapping.columnsOf(field).some(({ column }) => column === name),
    );
  const exact = new Set(mapping.columns.filter((name) => !isReadBy(name, false)));
  const columnText: ColumnText = (name) => {
    const member = members.get(name);
    if (!member || !exact.has(name)) return member?.text;
    return `if(${member.isLong}, ${member.digits}, ${member.text})`;
  };
  // Digits of another member would be a wrong amount or id. With a NUL it is neither a number nor text: the record is rejected.
  const givenText: ColumnText = (name) => {
    const member = members.get(name);
    if (!member || !exact.has(name)) return member?.text;
    const { isLong, losesDigits, digits, text } = member;
    return `multiIf(NOT ${isLong}, ${text}, ${losesDigits}, concat(${text}, '\\0'), ${digits})`;
  };
  const computed = [...members.values()].flatMap((member) => [
    ...member.computed,
    ...(exact.has(member.name) || isReadBy(member.name, true) ? [member.computedIsLong] : []),
  ]);
  const places = names.map((name, n) => `indexOf(keys, ${quoted(name)}) AS at_${n}`);
  // Keys are only looked at where there are more of them than were found.
  const missing = `countEqual([${names.map((_, n) => `at_${n}`).join(', ')}]::Array(UInt64), 0)`;
  const known = `(${[...new Set([...names, ...eventFields])].map(quoted).join(', ')})`;
  const unwanted = ignoreUnknown ? `name IN ${known} AND nth > 1` : `name NOT IN ${known} OR nth > 1`;
  const unknown = `if(length(keys) + ${missing} = ${names.length}, emptyArrayString(), arrayFilter((name, nth) -> ${unwanted}, keys, arrayEnumerateUniq(keys)))`;
  return {
    format: framing === 'lines' ? 'LineAsString' : 'RowBinary',
    // A map of all keys takes half the time of a tuple of those that are read, and tells which others there are.
    select: mapping.compute(
      `SELECT ${['*', `${unknown} AS unknown`, ...computed].join(', ')} FROM (
      SELECT ${['at_line', 'record', 'keys', 'texts', ...places].join(', ')} FROM (
      SELECT at_line, record, mapKeys(json) AS keys, mapValues(json) AS texts FROM (
      SELECT at_line, record, JSONExtract(record, 'Map(String, String)') AS json FROM (${records(framing)}))))`,
      givenText,
    ),
    structure: structureOf(framing),
    textOf: (field) => mapping.textOf(field, columnText),
    rules: [
      // What is not UTF-8, or holds a NUL, is not JSON either.
      ...unreadable.map(({ broken, reason }) => ({ broken: `empty(keys) AND ${broken}`, reason })),
      {
        broken: 'empty(keys) AND NOT isValidJSON(record)',
        reason: 'the record is not JSON that can be read; put numbers beyond 64 bits in quotes',
      },
      {
        broken: `NOT startsWith(record, '{') AND NOT ${matches('record', '^\\s*\\{')}`,
        reason: 'the record is not a JSON object',
      },
    ],
    textRules: (field) => {
      const { kind } = fieldSpecs[field];
      const own = mapping.columnsOf(field).flatMap(({ column, when }) => {
        const member = members.get(column);
        return member ? [{ member, when }] : [];
      });
      const any = (broken: (member: Member) => string) =>
        own
          .map(({ member, when }) => (when ? `(${when} AND ${broken(member)})` : `(${broken(member)})`))
          .join(' OR ');
      const rules = [...mapping.rulesOf(field)];
      if (own.length > 0 && kind === 'money') {
        rules.push({
          broken: any((member) => member.losesDigits),
          reason: 'has more digits than a JSON number keeps: write it in quotes',
        });
      }
      if (own.length > 0 && kind === 'text') {
        rules.push({
          // A byte of { and one of [ differ in one bit: half the time of looking for each.
          broken: `bitOr(ascii(t_${field}), 32) = ascii('{') AND (${any((member) => `${member.call('JSONType')} IN ('Object', 'Array')`)})`,
          reason: 'must be text, not an object or a list',
        });
      }
      return rules;
    },
    raw: 'record',
    columns: names,
    events: mapping.events,
    condition: mapping.condition,
  };
}
