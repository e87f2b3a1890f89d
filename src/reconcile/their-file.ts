import { join } from 'node:path';
import { familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog, Family } from '../../catalog/catalog.ts';
import { countFields } from '../../catalog/events.ts';
import type { Store } from '../../clickhouse/client.ts';
import {
  type DamagedPart,
  historyTables,
  requireWhole,
  tablesOf,
} from '../../clickhouse/consistency/damaged-parts.ts';
import type { Reads } from '../../clickhouse/reader.ts';
import { mappedReading } from '../../ingest/event/reading.ts';
import { type FormatName, formatOf } from '../../ingest/formats/formats.ts';
import type { Input } from '../../ingest/input/input.ts';
import { type MappingFlags, readMapping } from '../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../ingest/mapping/validate-mapping.ts';
import { readBeginning } from '../../ingest/suggest/beginning.ts';
import { type KnownExport, knownExports } from '../../ingest/suggest/known-exports.ts';
import { type NamedColumns, type Suggestion, suggestMapping } from '../../ingest/suggest/suggest-mapping.ts';
import { folderHere } from '../config/version.ts';
import { everyDay } from '../report/plan.ts';
import { type Compared, measuresOf } from './model/sides.ts';
import { NothingToCompare, type Reconciled, reconcile } from './reconcile.ts';
import { readTheirs, type TheirReport } from './their-rows.ts';

/** Their file, and how it is read. */
export interface TheirFile {
  readonly input: Input;
  readonly format?: FormatName;
  readonly mapping: MappingFlags;
  /** Rows of other days are not held. */
  readonly part?: Pick<ComparedPart, 'from' | 'to'>;
  /** What its rows may have in memory; absent: anything. */
  readonly maxBytes?: number;
  /** Nobody waits any more. */
  readonly signal?: AbortSignal;
}

let known: readonly KnownExport[] | undefined;

/**
 * What the names of the columns suggest; undefined where the format names fields by itself, as Parquet does.
 * @param columns that a person has named, by their fields
 */
export async function suggestedMapping(
  { input, format }: Pick<TheirFile, 'input' | 'format'>,
  { encoding, columns }: { readonly encoding?: string | undefined; readonly columns?: NamedColumns } = {},
): Promise<Suggestion | undefined> {
  if (!formatOf(input, format).text) return undefined;
  known ??= await knownExports(join(folderHere(), 'examples'));
  return withoutCounts(suggestMapping(known, await readBeginning(input, { format, encoding }), columns));
}

/** Reads 0 as a count of a report of amounts alone: events need one, and what is 0 everywhere is not compared. */
function withoutCounts(suggestion: Suggestion): Suggestion {
  const { fill_in: { impressions: _, ...fill_in } = {}, ...mapping } = suggestion.mapping;
  const read = Object.keys({ ...mapping.map, ...mapping.set, ...mapping.expressions });
  const known = [...read, ...suggestion.doubtful];
  const isOfAmounts = ['spend', 'revenue'].some((field) => read.includes(field));
  if (!isOfAmounts || ['event_type', ...countFields].some((field) => known.includes(field)))
    return suggestion;
  const reason = 'impressions: no column is known to hold a count, so amounts alone are compared';
  return {
    ...suggestion,
    mapping: { ...mapping, set: { ...mapping.set, impressions: '0' }, fill_in },
    reasons: [...suggestion.reasons, reason],
  };
}

/**
 * Reads their file as a report of this account, whatever the file says.
 * @throws {InputError} for a file that cannot be read, {MappingError} for a mapping that does not fit,
 * {NothingToCompare}, {TooManyRows}
 */
export async function readTheirFile(
  store: Store,
  reader: Reads,
  { catalog, family, account, timezone }: Pick<Compared, 'catalog' | 'family' | 'account' | 'timezone'>,
  { input, format, mapping, part = {}, maxBytes, signal }: TheirFile,
  warn: (text: string) => void = () => {},
): Promise<TheirReport> {
  const whose = Object.fromEntries([
    ...othersFields(catalog, family).map((field) => [field, '']),
    [familyOf(catalog, family).owner, account],
  ]);
  const spec = await readMapping({ ...withConstants(mapping, whose), ignoreUnknown: true });
  const valid = await validateMapping(store, spec, signal);
  const report = await readTheirs(reader, catalog, family, {
    input,
    format,
    reading: mappedReading(input.name, valid, warn),
    judge: {
      reportTimezone: timezone,
      // A day without a time is the day of a report.
      timezone: valid.timezone?.name ?? timezone,
      dates: valid.dates,
      roundMoney: valid.roundMoney,
      requireEventId: false,
    },
    days: { first: part.from ?? everyDay.first, last: part.to ?? everyDay.last },
    maxBytes,
  });
  if (report.first === '')
    throw new NothingToCompare(
      [`${input.name}: no record of it can be compared`, ...report.rejects].join('\n  '),
    );
  return report;
}

/** The same mapping with these values of fields, whatever it says of them. */
export function withConstants(
  { map = [], set = [], ...mapping }: MappingFlags,
  values: Readonly<Record<string, string>>,
): MappingFlags {
  const isOther = (given: string) => !Object.hasOwn(values, given.split('=', 1).join());
  const constants = Object.entries(values).map(([field, value]) => `${field}=${value}`);
  return { ...mapping, map: map.filter(isOther), set: [...set.filter(isOther), ...constants] };
}

/** Fields by which a record belongs to another family: a report may name the other side of each placement. */
function othersFields(catalog: Catalog, family: string): string[] {
  const fieldsOf = ({ owner, entity, dimensions }: Family) => [
    owner,
    ...[entity, ...dimensions].flatMap((name) => catalog.dimensions[name]?.key ?? []),
  ];
  const own = fieldsOf(familyOf(catalog, family));
  return Object.values(catalog.families)
    .flatMap(fieldsOf)
    .filter((field) => !own.includes(field));
}

/** What is compared of their report; without it what is there. */
export interface ComparedPart {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly figures?: readonly string[] | undefined;
}

/**
 * Compares their report with ours.
 * @param name of their file, for messages
 * @param damaged tells which parts of tables are damaged now
 * @throws {NothingToCompare}
 * @throws {DamagedFigures}
 */
export async function compareReport(
  whose: Omit<Compared, 'first' | 'last' | 'used'>,
  report: TheirReport,
  { from, to, figures }: ComparedPart,
  name: string,
  damaged: () => Promise<readonly DamagedPart[]>,
): Promise<Reconciled> {
  const [first, last] = [from ?? report.first, to ?? report.last];
  if (last < first) {
    const outside = from === undefined ? `on or before ${last}` : `on or after ${first}`;
    throw new NothingToCompare(
      `${name}: its days are ${report.first} to ${report.last}, and none is ${outside}`,
      from === undefined ? 'to' : 'from',
    );
  }
  const measures = measuresOf(familyOf(whose.catalog, whose.family));
  const used = measures.map((measure, n) =>
    figures ? figures.includes(measure) : (report.figures[n]?.values ?? 0) > 0,
  );
  if (!used.includes(true))
    throw new NothingToCompare(
      `${name}: all its figures are 0: give the figures that are compared, such as ${measures.join(',')}`,
    );
  const before = await damaged();
  const reconciled = await reconcile({ ...whose, first, last, used }, report);
  requireWhole([...before, ...(await damaged())], {
    days: [{ first, last }],
    tables: [...tablesOf(whose.catalog, whose.family), ...historyTables],
  });
  return reconciled;
}
