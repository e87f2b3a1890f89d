import type { Command } from 'commander';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, storeTime } from '../../../clickhouse/client.ts';
import { checkSchema } from '../../../clickhouse/consistency/check-schema.ts';
import { rebuildRollups } from '../../../clickhouse/consistency/rebuild-rollups.ts';
import { type DayRange, everyDay } from '../../../clickhouse/consistency/verify-rollups.ts';
import { migrate } from '../../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../../clickhouse/migrate/migrate-cluster.ts';
import { migrateEmbedded } from '../../../clickhouse/migrate/migrate-embedded.ts';
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
import { months, type PruneFlags, prune } from './prune.ts';
import { type RestoreFlags, restore } from './restore.ts';
import { printStatus, type StatusFlags } from './status.ts';
import { runVerify, type VerifyFlags } from './verify.ts';

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
    .description('compare the tables with what this version wants')
    .action(() => withStore(runCheck));
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
    .action((to: string) => withStore((store) => backup(store, to)));
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
    .action((flags: PruneFlags) =>
      withStore(async (store) => prune(store, flags, new Date(`${await storeTime(store)}Z`))),
    );
  addCloseCommands(program);
  const ofDays = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .option('--from <day>', 'first day, yyyy-mm-dd', day)
      .option('--to <day>', 'last day, yyyy-mm-dd', day)
      .option('--json', 'print JSON');
  ofDays('verify', 'compare the ledger, the raw events, every rollup and what was closed')
    .option(
      '--drop-damaged',
      'also give up damaged parts of tables that nothing is compared with; enter or load their rows again first',
    )
    .action((flags: RangeFlags & VerifyFlags) => {
      const days = rangeOf(flags);
      return withStore((store) => runVerify(store, days, flags));
    });
  ofDays('rebuild', 'recompute rollups from the raw events, whole months at a time').action(
    (flags: RangeFlags) => {
      const days = rangeOf(flags);
      return withStore((store) => runRebuild(store, days, flags.json ?? false));
    },
  );
}

async function runMigrate({ clickhouse, reportTimezone, dataDir }: Config): Promise<void> {
  const { url, names, cluster } = clickhouse;
  const options = { renewDictionaries: true, ...(names && { names }) };
  let applied: string[] = [];
  await withServer(async ({ address }) => {
    if (!url) applied = await migrateEmbedded(dataDir, address, reportTimezone);
    else if (cluster) applied = await migrateCluster(address, cluster, reportTimezone, options);
    else applied = await migrate(address, reportTimezone, options);
  });
  if (await wasNew(applied)) say('the tables were created');
  else say(applied.length ? `applied ${applied.join(', ')}` : 'the schema is up to date');
}

async function runCheck(store: Store): Promise<void> {
  const differences = await checkSchema(store, catalog);
  for (const difference of differences) print(difference);
  say(
    differences.length ? counted(differences.length, 'difference') : 'the tables are those of this version',
  );
  if (differences.length) process.exitCode = 1;
}

async function runRebuild(store: Store, days: DayRange, json: boolean): Promise<void> {
  const built = await exclusively(store, 'rebuild', `rollups ${days.from} to ${days.to}`, (load) =>
    rebuildRollups(store, catalog, days, {
      ...(process.stderr.isTTY && { onStep: say }),
      beforeExchange: () => load.assertTurnHeld(),
    }),
  );
  await untilReportsShowIt();
  if (json) print(JSON.stringify(built));
  say(`${counted(built.rollups, 'rollup')} rebuilt for ${counted(built.months, 'month')}`);
}

function rangeOf(flags: RangeFlags): DayRange {
  requireRange(flags);
  if (flags.from === undefined && flags.to === undefined) return everyDay;
  return { from: flags.from ?? everyDay.from, to: flags.to ?? everyDay.to };
}
