import { dimensionOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { countFields, type EventField, eventFields, fieldSpecs, isEventField } from '../../catalog/events.ts';
import { InputError } from '../input/input-error.ts';
import { hint, optionHint } from '../input/option-hint.ts';
import { shownNames } from '../input/similar-names.ts';
import {
  compileMapping,
  defaultMapping,
  type FileLayout,
  type Mapping,
  mappingFingerprint,
  type ValidMapping,
} from './mapping.ts';

/** The delimiter that stands for one or more spaces or tabs. */
export const blanks = 'blanks';

/** A piece of a stream of records that comes piece by piece, and may be cut elsewhere when it comes again. */
export interface ChannelPiece {
  readonly name: string;
  /** So many records at the beginning of the piece have come before, and are left out. */
  readonly known: number;
  /** The number in the stream of the record behind those, from 0. */
  readonly position: number;
}

/** What tells an input from others of the same bytes. */
export interface InputIdentity {
  /** What makes the same bytes other ones; empty but for replays and for what has a key. */
  readonly salt: string;
  /** What the ledger finds the input by, whatever it holds; absent: by what it begins with. */
  readonly key?: string;
  /** The stream that it is a piece of; absent: it is whole. */
  readonly channel?: ChannelPiece;
  /** What tells chunks of the same bytes apart that are read in another way; empty for the usual one. */
  readonly fingerprint: string;
}

/** How the columns of a file become the fields of events; the same for all its chunks. */
export interface FileReading extends InputIdentity, FileLayout {
  /** How many events a record is. */
  readonly eventsPerRecord: number;
  /** Says what a person should look at, though nothing is wrong in itself. */
  readonly warn: (text: string) => void;
  /** Warns of columns that are read only because they are called like a field, and of money that no report will show. */
  readonly warnOfColumns: (names: readonly string[]) => void;
  /** @param columns of the file; absent: any, as in NDJSON. @throws {InputError} when they do not fit */
  readonly mappingOf: (columns?: readonly string[]) => Mapping;
}

/** Columns are fields of the same name. */
export function plainReading(file: string): FileReading {
  return mappedReading(file, defaultMapping);
}

/** Columns become fields as the mapping says. */
export function mappedReading(
  file: string,
  valid: ValidMapping,
  warn: (text: string) => void = () => {},
): FileReading {
  const { header, ignoreUnknown } = valid;
  const warnOfColumns = (names: readonly string[]) => {
    for (const name of ignoreUnknown || valid.events ? namedByChance(valid, names) : []) {
      const none = noValue(name);
      const advice = valid.events
        ? `It counts in each event of a record that does not name it: "set": {"${name}": "${none}"} keeps it out of one, "map": {"${name}": "${name}"} beside events says that it is of all`
        : `The mapping does not name it. Is it the same (--map ${name}=${name}), or is it to be left out (--set ${name}=${none})?`;
      warn(`${file}: column ${name} is read because events have a field of that name. ${advice}`);
    }
    for (const text of moneyOfNobody(valid, names)) warn(`${file}: ${text}`);
  };
  return {
    ...valid,
    eventsPerRecord: valid.events?.length ?? 1,
    fingerprint: mappingFingerprint(valid),
    salt: '',
    warn,
    warnOfColumns,
    mappingOf: (columns) => {
      const mapping = columns ? compileMapping(valid, columns, file) : ofAnyColumns(valid);
      // Without a header nobody has named the columns, so none is there by mistake.
      if (columns && header && !ignoreUnknown) {
        const known = (name: string) => mapping.columns.includes(name) || isEventField(name);
        requireKnown(
          file,
          columns.filter((name) => !known(name)),
        );
      }
      if (columns) {
        requireFields(file, mapping, columns);
        warnOfColumns(columns);
      }
      return mapping;
    },
  };
}

const anyColumns = new WeakMap<ValidMapping, Mapping>();

/** Always the same object, so that many small inputs share what is made of it. */
function ofAnyColumns(valid: ValidMapping): Mapping {
  const mapping = anyColumns.get(valid) ?? compileMapping(valid);
  anyColumns.set(valid, mapping);
  return mapping;
}

/** Amounts of a file of others, whose time has another name, that the mapping does not name. */
function namedByChance(valid: ValidMapping, names: readonly string[]): EventField[] {
  const events = valid.events ?? [valid];
  const [first, ...others] = events;
  // Where even event_time is read by its name, the record is an event of ours, and its amounts are its own.
  if (others.length === 0 && !first?.sources.has('event_time')) return [];
  const amounts = names.filter(isEventField).filter((name) => noValue(name) !== '');
  return amounts.filter((name) => !events.every(({ sources }) => sources.has(name)));
}

const moneyBut = (field: EventField): string =>
  Object.values(catalog.families)
    .flatMap(({ money }) => (money === field ? [] : [money]))
    .join(' or ');

/** Money that a mapping reads without the account that it is of. */
function moneyOfNobody(valid: ValidMapping, names: readonly string[]): string[] {
  const events = valid.events ?? [valid];
  const says = (field: EventField) =>
    events.some(({ sources }) => {
      const source = sources.get(field);
      return source && !(source.kind === 'constant' && ['', '0'].includes(source.text));
    });
  const isNamed = (field: EventField) =>
    names.includes(field) && !events.every(({ sources }) => sources.has(field));
  return Object.values(catalog.families)
    .filter(({ money, owner }) => says(money) && !says(owner) && !isNamed(owner))
    .map(
      ({ money, owner, entity }) =>
        `${money} is read and no ${owner}, so no report shows it. Is it ${moneyBut(money)}? If not, say whose it is: ${owner} and ${dimensionOf(catalog, entity).key}`,
    );
}

/** What leaves an amount out; of other fields nothing does. */
export function noValue(field: EventField): string {
  const { kind, range = [0, 0] } = fieldSpecs[field];
  if (kind === 'flag') return 'false';
  return kind === 'money' || (kind === 'count' && range[0] === 0) ? '0' : '';
}

/** @throws {InputError} that names columns which nothing reads, the first of many */
function requireKnown(file: string, unknown: readonly string[]): void {
  if (unknown.length === 0) return;
  const names = shownNames(unknown.map((name) => name || '(without a name)'));
  const one = unknown.length === 1;
  const what = `${one ? 'column' : 'columns'} ${names} ${one ? 'is not a field' : 'are not fields'} of an event`;
  throw new InputError(
    `${file}: ${what}${hint('--suggest', 'a mapping', 'tells what is meant')}; there are ${eventFields.join(', ')}${optionHint('ignore_unknown', `leaves ${one ? 'it' : 'them'} out`, true)}`,
  );
}

/** @throws {InputError} when no record of the file can be an event */
function requireFields(file: string, { textOf }: Mapping, columns: readonly string[]): void {
  const given = (field: EventField) =>
    textOf(field, (column) => (columns.includes(column) ? "''" : undefined)) !== undefined;
  if (!given('event_time')) throw new InputError(`${file}: column event_time is missing`);
  if (!given('event_type') && !countFields.some(given)) {
    throw new InputError(`${file}: column event_type is missing, or a count: ${countFields.join(', ')}`);
  }
}
