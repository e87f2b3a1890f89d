import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import * as z from 'zod';
import { type EventField, eventFields, isEventField } from '../../catalog/events.ts';
import { type EventSpec, type FieldSource, MappingError, type MappingSpec } from '../event/mapping.ts';
import { blanks } from '../event/reading.ts';
import { sheetDates } from '../event/values.ts';
import { delimiterNamed, noDelimiter } from '../formats/delimiter.ts';
import { naming } from '../input/input-error.ts';
import type { HintedOption } from '../input/option-hint.ts';
import { encodingNamed, noEncoding } from '../input/text.ts';

/** A mapping that is in no file. */
interface MappingContent {
  /** For messages. */
  readonly name: string;
  readonly content: string;
}

/** Options of text, which a flag and a member of the file give alike. */
type TextOption = 'timezone' | 'encoding' | 'dates' | 'delimiter' | 'records';
type OtherOption = 'escapes' | 'header' | 'skipLines' | 'ignoreUnknown' | 'roundMoney';

export interface MappingFlags
  extends Partial<Record<TextOption, string>>,
    Partial<Pick<MappingSpec, OtherOption>> {
  /** Each `field=column`. */
  readonly map?: readonly string[];
  /** Each `field=constant`. */
  readonly set?: readonly string[];
  /** An expression: records for which it is false are left out. */
  readonly where?: string;
  /** Path of a mapping file, or what would be in one. */
  readonly mapping?: string | MappingContent;
}

const noNul = (text: string) => !text.includes('\0');
const text = z
  .string('must be text')
  .min(1, 'is empty: leave it out')
  .refine(noNul, 'must not hold a NUL character');
/** Empty: the field has no value, also where a column is called like it. */
const constant = z.string('must be text').refine(noNul, 'must not hold a NUL character');
const flag = z.boolean('must be true or false');

/** Each message completes the sentence that begins with the member. */
const event = {
  map: z.record(z.string(), text, 'must be an object of fields and their columns').default({}),
  set: z.record(z.string(), constant, 'must be an object of fields and their constants').default({}),
  expressions: z.record(z.string(), text, 'must be an object of fields and their expressions').default({}),
  where: text.optional(),
};
const twoToEight = 'must be a list of two to eight events, each with map, set, expressions or where';
const mappingFile = z.strictObject({
  ...event,
  events: z.array(z.strictObject(event), twoToEight).min(2, twoToEight).max(8, twoToEight).optional(),
  timezone: text.optional(),
  encoding: text.optional(),
  dates: text.optional(),
  delimiter: text.optional(),
  escapes: flag.optional(),
  header: flag.optional(),
  skip_lines: z
    .int('must be a whole number from 0')
    .min(0, 'must be a whole number from 0')
    .max(1000, 'must be at most 1000')
    .optional(),
  records: text.optional(),
  optional: z.array(text, 'must be a list of columns').optional(),
  ignore_unknown: flag.optional(),
  round_money: flag.optional(),
  fill_in: z.record(z.string(), text, 'must be an object of fields and questions').optional(),
} satisfies Record<HintedOption, z.ZodType> & Record<string, z.ZodType>);
/** A mapping as its file says it. */
export type MappingText = z.input<typeof mappingFile>;
const members = Object.keys(mappingFile.shape);

/**
 * The mapping of the flags and of the file they name; flags win.
 * @throws {MappingError} that names the flag, or the file and its member; {InputError} for a file that cannot be read
 */
export async function readMapping(flags: MappingFlags): Promise<MappingSpec> {
  const name = fileNamed(flags.mapping);
  const at = (member: string) => `${name}: ${member}`;
  const file = flags.mapping === undefined ? mappingFile.parse({}) : await readMappingFile(flags.mapping);
  const ofAll = eventOf(file, at);
  const own = flagSources(flags);
  const sources = new Map([...ofAll.sources, ...own]);
  const flagged = flags.where === undefined ? undefined : whereOf(flags.where, '--where');
  const where = flagged ?? ofAll.where;
  // What a flag says holds for every event.
  const events = file.events?.map((event, n) => {
    const ofOne = eventOf(event, (member) => at(`events[${n}].${member}`));
    const condition = flagged ?? bothOf(ofAll.where, ofOne.where);
    return {
      sources: new Map([...ofAll.sources, ...ofOne.sources, ...own]),
      ...(condition && { where: condition }),
    };
  });
  /** What the flag of that name says, or else the file. */
  const said = <T>(
    option: TextOption,
    read: (given: string, place: string) => T | undefined,
    fault: (given: string) => string = String,
  ): T | undefined => {
    const given = flags[option] ?? file[option];
    if (given === undefined) return undefined;
    const place = flags[option] === undefined ? at(option) : `--${option}`;
    const found = read(given, place);
    if (found === undefined) throw new MappingError(`${place}: ${fault(given)}`);
    return found;
  };
  const timezone = said('timezone', (name, place) => ({ name, place }));
  const encoding = said('encoding', encodingNamed, noEncoding);
  const dates = said('dates', (given) => sheetDates.find((each) => each === given), noDates);
  const delimiter = said(
    'delimiter',
    (given) => (given === blanks ? blanks : delimiterNamed(given)),
    (given) => noDelimiter(given, true),
  );
  const isGiven = (field: string) =>
    isEventField(field) && (events ?? [{ sources }]).every((event) => event.sources.has(field));
  const open = Object.entries(file.fill_in ?? {})
    .filter(([field]) => !(field === 'timezone' ? timezone : field === 'where' ? where : isGiven(field)))
    .map(([field, question]) => at(`fill_in.${field}: ${question}`));
  if (open.length > 0) throw new MappingError(open.join('\n'));
  return {
    sources,
    ...(where && { where }),
    ...(events && { events }),
    ...(timezone && { timezone }),
    ...(encoding !== undefined && { encoding }),
    ...(dates && { dates }),
    ...(delimiter !== undefined && { delimiter }),
    escapes: flags.escapes ?? file.escapes ?? false,
    header: flags.header === false ? false : (file.header ?? true),
    skipLines: flags.skipLines ?? file.skip_lines ?? 0,
    records: said('records', pathNamed, () => noPath) ?? [],
    optional: file.optional ?? [],
    ignoreUnknown: flags.ignoreUnknown ?? file.ignore_unknown ?? false,
    roundMoney: flags.roundMoney ?? file.round_money ?? false,
  };
}

type Condition = MappingSpec['where'];

/** A condition of all events and one of this event hold together. */
function bothOf(all: Condition, own: Condition): Condition {
  if (!all || !own) return own ?? all;
  return { ...own, expression: `(${all.expression}\n) AND (${own.expression}\n)` };
}

function flagSources(flags: MappingFlags): Map<EventField, FieldSource> {
  const sources = new Map<EventField, FieldSource>();
  for (const member of ['map', 'set'] as const) {
    const kind = kinds[member];
    for (const argument of flags[member] ?? []) {
      const at = argument.indexOf('=');
      const [field, text] = [argument.slice(0, at), argument.slice(at + 1)];
      if (at < 1 || (text === '' && kind === 'column'))
        throw new MappingError(`--${member} ${argument}: give field=${kind}`);
      const place = `--${member} ${field}`;
      if (!noNul(text)) throw new MappingError(`${place}: must not hold a NUL character`);
      addSource(sources, field, { kind, text, place });
    }
  }
  return sources;
}

const fileNamed = (mapping: MappingFlags['mapping'] = '') =>
  typeof mapping === 'string' ? basename(mapping) : mapping.name;

async function readMappingFile(mapping: string | MappingContent): Promise<z.infer<typeof mappingFile>> {
  const name = fileNamed(mapping);
  const content =
    typeof mapping === 'string' ? await naming(mapping, () => readFile(mapping, 'utf8')) : mapping.content;
  const source = content.replace(/^\uFEFF/, '');
  const found = parsed(name, source);
  requireOnce(name, source);
  return found;
}

type EventOfFile = Pick<z.infer<typeof mappingFile>, 'map' | 'set' | 'expressions' | 'where'>;

const kinds = { map: 'column', set: 'constant', expressions: 'expression' } as const;

/** @param at says where in the file a member stands */
function eventOf({ where, ...event }: EventOfFile, at: (member: string) => string): EventSpec {
  const sources = new Map<EventField, FieldSource>();
  for (const member of ['map', 'set', 'expressions'] as const) {
    for (const [field, text] of Object.entries(event[member]))
      addSource(sources, field, { kind: kinds[member], text, place: at(`${member}.${field}`) });
  }
  return { sources, ...(where !== undefined && { where: whereOf(where, at('where')) }) };
}

function whereOf(expression: string, place: string): NonNullable<MappingSpec['where']> {
  if (expression.trim() === '') throw new MappingError(`${place}: is empty: leave it out`);
  if (!noNul(expression)) throw new MappingError(`${place}: must not hold a NUL character`);
  return { expression, place };
}

function parsed(name: string, source: string): z.infer<typeof mappingFile> {
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (error) {
    throw new MappingError(`${name}: is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const result = mappingFile.safeParse(json);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue?.code === 'unrecognized_keys') {
    throw new MappingError(
      `${name}: ${issue.keys[0]} is no member of a mapping; there are ${members.join(', ')}`,
    );
  }
  const member = issue?.path.join('.');
  throw new MappingError(
    member
      ? `${name}: ${member} ${issue?.message}`
      : `${name}: must be a JSON object with ${members.join(', ')}`,
  );
}

/** JSON.parse keeps the last of two members of one name. */
function requireOnce(name: string, source: string): void {
  const open: Set<string>[] = [];
  for (const [bracket, key, colon] of source.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g)) {
    if (bracket === '{') open.push(new Set());
    else if (bracket === '}') open.pop();
    if (!key || !colon) continue;
    const member = String(JSON.parse(key));
    if (open.at(-1)?.has(member))
      throw new MappingError(`${name}: ${member} stands there twice; leave one of them out`);
    open.at(-1)?.add(member);
  }
}

function addSource(sources: Map<EventField, FieldSource>, field: string, source: FieldSource): void {
  if (!isEventField(field)) {
    throw new MappingError(
      `${source.place}: ${field} is no field of an event; there are ${eventFields.join(', ')}`,
    );
  }
  const other = sources.get(field);
  if (other) throw new MappingError(`${source.place}: ${other.place} says it already; leave one of them out`);
  sources.set(field, source);
}

const noDates = (given: string) => `${given} is no kind of serial dates; there are ${sheetDates.join(', ')}`;

function pathNamed(given: string): readonly string[] | undefined {
  const path = given.split('.');
  return path.includes('') ? undefined : path;
}

const noPath = 'give the names of members, one in the other, such as data or report.rows';
