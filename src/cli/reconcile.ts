import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { damagedParts } from '../../clickhouse/consistency/damaged-parts.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import type { FormatName } from '../../ingest/formats/formats.ts';
import type { Input } from '../../ingest/input/input.ts';
import { reportTimezone } from '../../ingest/load/report-timezone.ts';
import { type MappingFlags, readMapping } from '../../ingest/mapping/read-mapping.ts';
import { expandFiles } from '../../ingest/places/expand-files.ts';
import { withReader } from '../close/with-reader.ts';
import { answerOf } from '../reconcile/answer.ts';
import { type Status, statuses } from '../reconcile/model/about.ts';
import { measuresOf } from '../reconcile/model/sides.ts';
import type { Reconciled } from '../reconcile/reconcile.ts';
import { compileRows, compileTable, countRows, type RowCounts } from '../reconcile/rows.ts';
import { compareReport, readTheirFile, suggestedMapping, withConstants } from '../reconcile/their-file.ts';
import type { TheirReport } from '../reconcile/their-rows.ts';
import { describeVerdict } from '../reconcile/verdict.ts';
import { allShardsOf } from '../report/all-shards.ts';
import { accountId, day, requireRange, share, usage } from './command/arguments.ts';
import { counted, exitRejected, line, print, say, withStore } from './command/command.ts';
import { addMappingOptions } from './command/mapping-options.ts';
import { tableOf } from './command/table.ts';
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
      'what is compared, such as impressions,spent; without it every figure that is not 0 in all their records',
    )
    .option('--tolerance <P%>', 'rows that differ by no more are within', share, '0')
    .option('--json', 'print JSON')
    .option('--ndjson', 'print the rows that differ as NDJSON, and the rest on standard error');
  addMappingOptions(command).action((file: string, flags: ReconcileFlags) =>
    withStore((store) => withReader(store, (reader) => reconcileFile(store, reader, file, flags))),
  );
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
  const [input, another] = await expandFiles([file], objectStores(undefined));
  if (!input || another) throw usage(`${file}: give one file`);
  const { account, from, to, tolerance } = flags;
  const { family, report } = await theirReport(store, reader, input, flags);
  const whose = { reader, catalog, family, account, namesFiles: true };
  const where = { timezone: await reportTimezone(store), routing: await allShardsOf(store) };
  const part = { from, to, figures: figuresOf(family, flags.figures) };
  const damaged = () => damagedParts(store);
  const reconciled = await compareReport({ ...whose, ...where }, report, part, file, damaged);
  await tell(reconciled, report, tolerance, flags);
  if (report.rejected === 0) return;
  say(`${counted(report.rejected, 'record')} of theirs cannot be read and is compared with nothing:`);
  for (const reason of report.rejects) say(`  ${line([reason])}`);
  process.exitCode = exitRejected;
}

/** Their report, read by the mapping of the flags; without one by what the names of its columns suggest. */
async function theirReport(store: Store, reader: Reader, input: Input, flags: ReconcileFlags) {
  const { account, format, map, encoding } = flags;
  const isMapped = flags.mapping !== undefined || map !== undefined;
  const file = { input, format };
  const suggestion = isMapped ? undefined : await suggestedMapping(file, { encoding });
  for (const reason of suggestion?.reasons ?? []) say(line([reason]));
  const content = suggestion && {
    name: 'what the columns suggest',
    content: JSON.stringify(suggestion.mapping),
  };
  const mapping = { ...flags, ...(content && { mapping: content }) };
  const owners = Object.values(catalog.families).map(({ owner }) => [owner, account]);
  const { sources } = await readMapping({
    ...withConstants(mapping, Object.fromEntries(owners)),
    ignoreUnknown: true,
  });
  const family =
    flags.family ?? (sources.has('ad_unit_id') && !sources.has('campaign_id') ? 'ad_units' : 'campaigns');
  if (!Object.hasOwn(catalog.families, family))
    throw usage(`there is no family ${family}: give ${Object.keys(catalog.families).join(' or ')}`);
  const report = await readTheirFile(
    store,
    reader,
    { catalog, family, account, timezone: await reportTimezone(store) },
    { ...file, mapping },
    (warning) => say(`warning: ${warning}`),
  );
  return { family, report };
}

function figuresOf(family: string, asked: string | undefined): string[] | undefined {
  const names = measuresOf(familyOf(catalog, family));
  const wanted = asked?.split(',').map((name) => name.trim());
  const unknown = wanted?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw usage(`--figures: ${family} have ${names.join(', ')}, not ${unknown}`);
  return wanted;
}

async function tell(
  reconciled: Reconciled,
  report: TheirReport,
  tolerance: string,
  { json, ndjson }: ReconcileFlags,
): Promise<void> {
  if (json) {
    print(await answerOf(reconciled, report, tolerance));
    return;
  }
  const { reader } = reconciled.compared;
  const { of: rows, listed } = await countRows(reconciled, tolerance);
  const write = ndjson ? say : print;
  if (ndjson) {
    const query = compileRows(reconciled, tolerance);
    const answer = await reader.stream({ ...query, query: `${query.query}\nFORMAT JSONEachRow` });
    await pipeline(answer, process.stdout, { end: false });
  } else {
    const table = compileTable(reconciled, tolerance, mostShown);
    for (const each of await tableOf(reader, table)) write(each);
  }
  if (!ndjson && listed > mostShown) write(`… and ${listed - mostShown} more rows, which --ndjson prints`);
  write(describeRows(reconciled, rows));
  for (const each of describeVerdict(reconciled)) write(line([each]));
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
