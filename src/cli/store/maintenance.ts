import type { Command } from 'commander';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { checkSchema } from '../../../clickhouse/consistency/check-schema.ts';
import { rebuildRollups } from '../../../clickhouse/consistency/rebuild-rollups.ts';
import { type DayRange, everyDay, verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { migrate } from '../../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../../clickhouse/migrate/migrate-cluster.ts';
import { migrateEmbedded } from '../../../clickhouse/migrate/migrate-embedded.ts';
import { interruptedUnloads } from '../../../ingest/history/interrupted-unloads.ts';
import { type LedgerDifference, verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { publicKeyOf } from '../../close/signature.ts';
import { verifyCloses } from '../../close/verify-closes.ts';
import { withReader } from '../../close/with-reader.ts';
import type { Config } from '../../config/config.ts';
import { day, requireRange } from '../command/arguments.ts';
import {
  config,
  counted,
  print,
  say,
  untilReportsShowIt,
  wasNew,
  withServer,
  withStore,
} from '../command/command.ts';
import { backup } from './backup.ts';
import { addCloseCommands } from './close.ts';
import { exclusively } from './exclusively.ts';
import { endUnload } from './next-steps.ts';
import { months, type PruneFlags, prune } from './prune.ts';
import { type RestoreFlags, restore } from './restore.ts';
import { printStatus, type StatusFlags } from './status.ts';

interface RangeFlags {
  readonly from?: string;
  readonly to?: string;
  readonly json?: boolean;
}

/** `migrate`, `check`, `verify` and `rebuild`, and those of every day: `status`, `backup`, `restore` and `prune`. */
export function addMaintenanceCommands(program: Command): void {
  program
    .command('migrate')
    .description('create the tables, or bring them up to this version')
    .action(() => runMigrate(config()));
  program
    .command('check')
    .description('compare the live schema with the catalog')
    .action(() => withStore(runCheck));
  addDayTwoCommands(program);
  addCloseCommands(program);
  for (const [name, description, action] of [
    ['verify', 'compare the ledger, the raw events, every rollup and what was closed', runVerify],
    ['rebuild', 'recompute rollups from the raw events, whole months at a time', runRebuild],
  ] as const) {
    program
      .command(name)
      .description(description)
      .option('--from <day>', 'first day, yyyy-mm-dd', day)
      .option('--to <day>', 'last day, yyyy-mm-dd', day)
      .option('--json', 'print JSON')
      .action((flags: RangeFlags) => {
        const days = rangeOf(flags);
        return withStore((store) => action(store, days, flags.json ?? false));
      });
  }
}

function addDayTwoCommands(program: Command): void {
  program
    .command('status')
    .description('tell on one screen what is stored, loaded and open, and what to do next')
    .option('--json', 'print JSON')
    .option('--next', 'print only what to do next, and nothing if there is nothing to do: for cron')
    .action((flags: StatusFlags) => withServer((store) => printStatus(store, new Date(), flags)));
  program
    .command('backup')
    .description('verify the database and write a backup of it, while nothing is loading')
    .argument(
      '<to>',
      'a file (.tar.zst, .tar.gz, .tar) or folder; of a ClickHouse server also s3://BUCKET/PATH',
    )
    .action((to: string) => withServer((store) => backup(store, to)));
  program
    .command('restore')
    .description('bring a backup back, migrate it to this version and verify it')
    .argument('<from>', 'as it was given to backup')
    .option('--replace', 'drop what is in the database, once the backup is restored beside it and fits')
    .action((from: string, flags: RestoreFlags) => withServer((store) => restore(store, from, flags)));
  program
    .command('prune')
    .description(
      'fold raw events of old months into sums that keep every report; with --reports drop them and their reports',
    )
    .requiredOption('--keep <period>', 'months or years that stay, besides this month: 25mo, 3y', months)
    .option(
      '--reports',
      'drop the events and rollups of these months instead: reports have no rows for them any more',
    )
    .option(
      '--anyway',
      'also where that loses what was taken back, or reports, of months that are not closed',
    )
    .option('--dry-run', 'only say what would be folded or dropped')
    .action((flags: PruneFlags) => withStore((store) => prune(store, flags, new Date())));
}

async function runMigrate({ clickhouse, reportTimezone, dataDir }: Config): Promise<void> {
  const { url, user, password, names, database, cluster } = clickhouse;
  const options = { renewDictionaries: true, ...(names && { names }) };
  let applied: string[] = [];
  if (url) {
    const address = { url, user, password, database };
    applied = cluster
      ? await migrateCluster(address, cluster, reportTimezone, options)
      : await migrate(address, reportTimezone, options);
  } else {
    await withServer(async ({ address }) => {
      applied = await migrateEmbedded(dataDir, address, reportTimezone);
    });
  }
  if (await wasNew(applied)) say('the tables were created');
  else say(applied.length ? `applied ${applied.join(', ')}` : 'the schema is up to date');
}

async function runCheck(store: Store): Promise<void> {
  const differences = await checkSchema(store, catalog);
  for (const difference of differences) print(difference);
  say(differences.length ? counted(differences.length, 'difference') : 'the schema agrees with the catalog');
  if (differences.length) process.exitCode = 1;
}

/** One line for each difference; exit code 1 if there are any. */
async function runVerify(store: Store, days: DayRange, json: boolean): Promise<void> {
  const ledger = await verifyLedger(store, days);
  const { differences, more } = await verifyRollups(store, catalog, days);
  const keys = config().signing?.publicKeys.map(publicKeyOf);
  const closes = await withReader(store, (reader) => verifyCloses(store, reader, catalog, days, keys));
  const unloads = (await interruptedUnloads(store)).map(({ load }) => load);
  if (json) print(JSON.stringify([...ledger.differences, ...differences, ...closes]));
  else {
    for (const each of ledger.differences) print(describeDifference(each));
    for (const { table, account, day, measure, events, rollup } of differences) {
      print(`${table}\t${account}\t${day}\t${measure}: ${events} in events, ${rollup} in the rollup`);
    }
    for (const { account, month, revision, what } of closes) {
      print(`${account}\t${month}\tclosed as ${revision}\t${what}`);
    }
  }
  if (ledger.differences.length === 0 && unloads.length === 0) say('every chunk agrees with the ledger');
  else say(`${countedDifferences(ledger)} from the ledger; ${mendingOf(ledger.differences, unloads)}`);
  if (differences.length === 0) say('every rollup agrees with the raw events');
  else {
    // They rebuild the rollups, too.
    const isOpen = unloads.length > 0 || ledger.differences.some(({ inDoubt }) => inDoubt);
    const repair = isOpen ? 'mend the ledger first' : 'repair with: adtally rebuild --from DAY --to DAY';
    say(`${countedDifferences({ differences, more })} of rollups from the raw events; ${repair}`);
  }
  if (closes.length > 0) {
    say(`${counted(closes.length, 'closed month')} changed after it was closed; restore it from a backup`);
  }
  if (differences.length + ledger.differences.length + closes.length > 0) process.exitCode = 1;
}

function countedDifferences({
  differences,
  more,
}: {
  readonly differences: readonly unknown[];
  readonly more: boolean;
}): string {
  return `${more ? 'more than ' : ''}${counted(differences.length, 'difference')}`;
}

function describeDifference({ load, file, chunk, day, what, stored, ledger }: LedgerDifference): string {
  return `${file}\t${load}\tchunk ${chunk.slice(0, 12)}${day && `\t${day}`}\t${what}: ${stored} stored, ${ledger} in the ledger`;
}

/** The commands that mend differences, with their loads. @param unloads loads whose unload was interrupted */
function mendingOf(differences: readonly LedgerDifference[], unloads: readonly string[]): string {
  const first = (inDoubt: 0 | 1) =>
    differences.find((each) => each.inDoubt === inDoubt && !unloads.includes(each.load));
  const interrupted = first(1);
  const wrong = first(0);
  return [
    ...unloads.map(endUnload),
    ...(interrupted ? [`complete interrupted loads with: adtally ingest events ${interrupted.file}`] : []),
    // A replacement that is completed mends what it replaces.
    ...(wrong && !interrupted
      ? [`repair the others with: adtally unload ${wrong.load}, then load its file again`]
      : []),
  ].join('; ');
}

async function runRebuild(store: Store, days: DayRange, json: boolean): Promise<void> {
  const built = await exclusively(store, 'rebuild', `rollups ${days.from} to ${days.to}`, (load) =>
    rebuildRollups(store, catalog, days, {
      onStep: ({ table, month, done, total }) => {
        if (process.stderr.isTTY) say(`${done}/${total} ${table} ${month}`);
      },
      beforeExchange: () => load.assertTurnHeld(),
    }),
  );
  await untilReportsShowIt();
  if (json) print(JSON.stringify(built));
  say(`${counted(built.rollups, 'rollup')} rebuilt for ${counted(built.months, 'month')}`);
}

function rangeOf(flags: RangeFlags): DayRange {
  requireRange(flags);
  return { from: flags.from ?? everyDay.from, to: flags.to ?? everyDay.to };
}
