import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { mappedReading } from '../../ingest/event/reading.ts';
import type { FormatName } from '../../ingest/formats/formats.ts';
import type { Input } from '../../ingest/input/input.ts';
import { reportTimezone } from '../../ingest/load/report-timezone.ts';
import { type MappingFlags, readMapping } from '../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../ingest/mapping/validate-mapping.ts';
import { expandFiles } from '../../ingest/places/expand-files.ts';
import { readBeginning } from '../../ingest/suggest/beginning.ts';
import { knownExports } from '../../ingest/suggest/known-exports.ts';
import { suggestMapping } from '../../ingest/suggest/suggest-mapping.ts';
import { routingOf } from '../close/verify-closes.ts';
import { withReader } from '../close/with-reader.ts';
import { folderHere } from '../config/version.ts';
import { measuresOf } from '../reconcile/model/sides.ts';
import { type Reconciled, reconcile } from '../reconcile/reconcile.ts';
import {
  compileRows,
  compileTable,
  countRows,
  type RowCounts,
  type Status,
  statuses,
} from '../reconcile/rows.ts';
import { readTheirs, type TheirReport } from '../reconcile/their-rows.ts';
import { describeVerdict, verdictOf } from '../reconcile/verdict.ts';
import { accountId, day, requireRange, usage } from './command/arguments.ts';
import { counted, exitRejected, print, say, withStore } from './command/command.ts';
import { addMappingOptions } from './command/mapping-options.ts';
import { objectStores } from './ingest/object-stores.ts';

interface ReconcileFlags extends MappingFlags {
  readonly account: string;
  readonly family?: string;
  readonly from?: string;
  readonly to?: string;
  readonly figures?: string;
  readonly tolerance: string;
  readonly format?: FormatName;
  readonly json?: boolean;
  readonly ndjson?: boolean;
}

/** `reconcile`: a report of the other side beside ours. */
export function addReconcile(program: Command): void {
  const command = program
    .command('reconcile')
    .description('compare a report of the other side with ours by day and key, and say what explains the gap')
    .argument('<file>', 'their report: a file, an s3://, gs:// or az:// address')
    .requiredOption('--account <account>', 'whose report it is', accountId)
    .option(
      '--family <name>',
      `${Object.keys(catalog.families).join(' or ')}; without it as the mapping says`,
    )
    .option('--from <day>', 'the first day that is compared; without it their first', day)
    .option('--to <day>', 'the last day that is compared; without it their last', day)
    .option(
      '--figures <names>',
      'what is compared, such as impressions,spent; without it what is not 0 in theirs',
    )
    .option('--tolerance <P%>', 'rows that differ by no more are within', percent, '0')
    .option('--json', 'print JSON')
    .option('--ndjson', 'print the rows that differ as NDJSON, and the rest on standard error');
  addMappingOptions(command).action((file: string, flags: ReconcileFlags) =>
    withStore((store) => withReader(store, (reader) => reconcileFile(store, reader, file, flags))),
  );
}

/** `5%` as `5`. */
function percent(given: string): string {
  const [, share] = /^(\d{1,6}(?:\.\d{1,6})?)%$/.exec(given) ?? [];
  if (share === undefined) throw new InvalidArgumentError('Give a share, such as 5%.');
  return share;
}

/** Rows that the table for people has. */
const mostShown = 50;

async function reconcileFile(
  store: Store,
  reader: Reader,
  file: string,
  flags: ReconcileFlags,
): Promise<void> {
  requireRange(flags);
  const [input, another] = await expandFiles([file], objectStores(undefined, say));
  if (!input || another) throw usage(`${file}: give one file`);
  const { family, report, timezone } = await theirReport(store, reader, input, flags);
  const { account, from = report.first, to = report.last, tolerance } = flags;
  const compared = {
    ...{ reader, catalog, family, account, timezone },
    routing: await routingOf(store),
    first: from,
    last: to,
    used: usedFigures(file, family, report, flags.figures),
  };
  if (to < from) {
    const outside = flags.from === undefined ? `on or before ${to}` : `on or after ${from}`;
    throw new Error(`${file}: its days are ${report.first} to ${report.last}, and none is ${outside}`);
  }
  const reconciled = await reconcile(compared, report);
  await tell(reconciled, { tolerance }, flags);
  if (report.rejected === 0) return;
  say(`${counted(report.rejected, 'record')} of theirs cannot be read and is compared with nothing:`);
  for (const reason of report.rejects) say(`  ${reason}`);
  process.exitCode = exitRejected;
}

/** Their report, read by the mapping of the flags; without one by what the names of its columns suggest. */
async function theirReport(store: Store, reader: Reader, input: Input, flags: ReconcileFlags) {
  const { account, format, map, set = [], mapping } = flags;
  const owners = Object.values(catalog.families).map(({ owner }) => owner);
  const others = set.filter((each) => !owners.some((owner) => each.startsWith(`${owner}=`)));
  const guessed = mapping === undefined && map === undefined ? await suggested(input, flags) : mapping;
  const read = { ...flags, ...(guessed !== undefined && { mapping: guessed }), ignoreUnknown: true };
  const accounts = (owning: readonly string[]) => [
    ...others,
    ...owning.map((owner) => `${owner}=${account}`),
  ];
  const { sources } = await readMapping({ ...read, set: accounts(owners) });
  const family =
    flags.family ?? (sources.has('ad_unit_id') && !sources.has('campaign_id') ? 'ad_units' : 'campaigns');
  if (!Object.hasOwn(catalog.families, family))
    throw usage(`there is no family ${family}: give ${Object.keys(catalog.families).join(' or ')}`);
  const { owner } = familyOf(catalog, family);
  const valid = await validateMapping(store, await readMapping({ ...read, set: accounts([owner]) }));
  const reportZone = await reportTimezone(store);
  const report = await readTheirs(reader, catalog, family, {
    input,
    ...(format && { format }),
    reading: mappedReading(input.name, valid, (warning) => say(`warning: ${warning}`)),
    judge: {
      reportTimezone: reportZone,
      // A day without a time is the day of a report.
      timezone: valid.timezone?.name ?? reportZone,
      dates: valid.dates,
      roundMoney: valid.roundMoney,
      requireEventId: false,
    },
  });
  if (report.first === '')
    throw new Error([`${input.name}: no record of it can be compared`, ...report.rejects].join('\n  '));
  return { family, report, timezone: reportZone };
}

async function suggested(input: Input, { format, encoding }: ReconcileFlags) {
  const beginning = await readBeginning(input, {
    ...(format && { format }),
    ...(encoding !== undefined && { encoding }),
  });
  const { mapping, reasons } = suggestMapping(await knownExports(join(folderHere(), 'examples')), beginning);
  for (const reason of reasons) say(reason);
  return { name: 'what the columns suggest', content: JSON.stringify(mapping) };
}

function usedFigures(
  file: string,
  family: string,
  { figures }: TheirReport,
  asked: string | undefined,
): boolean[] {
  const names = measuresOf(familyOf(catalog, family));
  if (asked === undefined) {
    if (figures.every(({ values }) => values === 0))
      throw new Error(`${file}: all its figures are 0: name with --figures what is compared`);
    return figures.map(({ values }) => values > 0);
  }
  const wanted = asked.split(',').map((name) => name.trim());
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown !== undefined) throw usage(`--figures: ${family} have ${names.join(', ')}, not ${unknown}`);
  return names.map((name) => wanted.includes(name));
}

async function tell(
  reconciled: Reconciled,
  asked: { readonly tolerance: string },
  { json, ndjson }: ReconcileFlags,
): Promise<void> {
  const { reader } = reconciled.compared;
  const { of: rows, listed } = await countRows(reconciled, asked);
  if (json) {
    const query = compileRows(reconciled, asked);
    const settings = { ...query.settings, output_format_json_array_of_rows: 1 };
    const list = await text(
      await reader.stream({ ...query, query: `${query.query}\nFORMAT JSONEachRow`, settings }),
    );
    print(
      `${JSON.stringify({ ...verdictOf(reconciled), rows }).slice(0, -1)},"differences":${list.trim() || '[]'}}`,
    );
    return;
  }
  const write = ndjson ? say : print;
  if (ndjson) {
    const query = compileRows(reconciled, asked);
    const answer = await reader.stream({ ...query, query: `${query.query}\nFORMAT JSONEachRow` });
    await pipeline(answer, process.stdout, { end: false });
  } else {
    const table = compileTable(reconciled, asked, mostShown);
    const pretty = {
      output_format_pretty_color: 0,
      output_format_pretty_row_numbers: 0,
      output_format_pretty_max_column_name_width_cut_to: 0,
    };
    const statement = {
      ...table,
      query: `${table.query}\nFORMAT PrettyCompactMonoBlock`,
      settings: { ...table.settings, ...pretty },
    };
    const shown = (await text(await reader.stream(statement))).trimEnd();
    if (shown !== '') write(shown);
  }
  if (!ndjson && listed > mostShown) write(`… and ${listed - mostShown} more rows, which --ndjson prints`);
  write(describeRows(reconciled, rows));
  for (const line of describeVerdict(reconciled)) write(line);
}

function describeRows({ compared }: Reconciled, rows: RowCounts['of']): string {
  const { account, family, first, last } = compared;
  const told = {
    equal: 'equal',
    within: 'within the tolerance',
    differs: 'differ',
    only_ours: 'only in ours',
    only_theirs: 'only in theirs',
  } satisfies Record<Status, string>;
  const counts = statuses.map((status) => `${rows[status]} ${told[status]}`);
  return `${family} of ${account} from ${first} to ${last}, rows by day: ${counts.join(', ')}.`;
}
