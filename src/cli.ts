#!/usr/bin/env node
import { Command, CommanderError, Option } from 'commander';
import { catalog } from '../catalog/catalog.ts';
import { connect, type Store } from '../clickhouse/client.ts';
import { checkSchema } from '../clickhouse/consistency/check-schema.ts';
import { acquireEmbedded } from '../clickhouse/embedded/embedded.ts';
import { formats } from '../ingest/input/file-format.ts';
import { confirmDays } from '../ingest/lists/confirmations.ts';
import { lookupLists } from '../ingest/lists/lookup-lists.ts';
import { requireLoad, writeLoad, writeLoads, writeRejects } from '../ingest/load/load-history.ts';
import { accountId, day, instant, positiveInteger, rejectLimit, usage } from './cli/arguments.ts';
import { addClusterCommands } from './cli/cluster.ts';
import { ingestEvents, ingestLists, replayRejects } from './cli/ingest.ts';
import { type LimitFlags, limitRequests } from './cli/limits.ts';
import { type MaintenanceFlags, migrateServer, runRebuild, runVerify } from './cli/maintenance.ts';
import { run } from './cli/run.ts';
import { runDemo, runService, untilStopped } from './cli/serve.ts';
import { createLogin, listLogins, revokeLogin } from './cli/tokens.ts';
import { type Config, loadConfig } from './config.ts';
import { openStore } from './store.ts';

/** Exit codes: 0 done, 1 failed, 2 wrong usage. Human output on stderr, machine output on stdout. */
const program = new Command('adtally')
  .description('Ad performance reports from ClickHouse: exact, complete, streamed.')
  .exitOverride()
  .configureHelp({ showGlobalOptions: true });

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const print = (text: string): void => void process.stdout.write(`${text}\n`);

program
  .command('serve')
  .description('run the HTTP service')
  .action(() => runService(config()));

program
  .command('demo')
  .description('serve, on a sample when the store is empty')
  .action(() => runDemo(config()));

program
  .command('clickhouse')
  .description('run the embedded ClickHouse on its own, for several processes to share')
  .action(async () => {
    const lease = await acquireEmbedded(config().dataDir);
    say(`ClickHouse answers on ${lease.url} (native protocol: 127.0.0.1:${lease.tcpPort}); Ctrl-C stops it`);
    await untilStopped(lease.lost);
    await lease.release();
  });

program
  .command('migrate')
  .description('bring the store up to this version')
  .action(async () => {
    const { url, user, password, database } = config().clickhouse;
    // Opening the embedded store migrates it.
    if (!url) {
      await withStore(async () => {});
      say('the store is up to date');
      return;
    }
    const applied = await migrateServer({ url, user, password, database }, config());
    say(applied.length ? `applied ${applied.join(', ')}` : 'the store is up to date');
  });

program
  .command('check')
  .description('compare the live schema with the catalog')
  .action(() =>
    withStore(async (store) => {
      const differences = await checkSchema(store, catalog);
      for (const difference of differences) print(difference);
      say(differences.length ? `${differences.length} differences` : 'the schema agrees with the catalog');
      if (differences.length) process.exitCode = 1;
    }),
  );

for (const [name, description, action] of [
  ['verify', 'compare every rollup with the raw events', runVerify],
  ['rebuild', 'recompute rollups from the raw events, whole months at a time', runRebuild],
] as const) {
  program
    .command(name)
    .description(description)
    .option('--from <day>', 'first day, yyyy-mm-dd', day)
    .option('--to <day>', 'last day, yyyy-mm-dd', day)
    .option('--json', 'as JSON')
    .action((flags: MaintenanceFlags) =>
      withStore(async (store) => {
        process.exitCode = await action(store, flags);
      }),
    );
}

addClusterCommands(program, withStore);

const ingest = program.command('ingest').description('load events, names and confirmations');
const format = () =>
  new Option('--format <format>', 'the format, where the file name does not tell').choices(
    Object.keys(formats),
  );

ingest
  .command('events')
  .description('load events; - is standard input, a folder or a quoted pattern is many files')
  .argument('<file...>')
  .addOption(format())
  .option('--dry-run', 'check everything, load nothing')
  .option('--max-rejects <N|P%>', 'stop before the chunk with which more rows are faulty', rejectLimit)
  .option('--ignore-unknown', 'leave out columns that no event has, instead of refusing the file')
  .option('--dedupe', 'count an event_id once that is already present on the days touched')
  .option('--chunk-bytes <bytes>', 'how much is sent at once', positiveInteger, 128 << 20)
  .option('--parallel <chunks>', 'how many chunks are sent at a time', positiveInteger, 2)
  .option('--quiet', 'no progress bar')
  .option('--json', 'print what was loaded as JSON')
  .action((files: string[], flags) =>
    withStore(async (store) => {
      process.exitCode = await ingestEvents(store, files, flags);
    }),
  );

for (const [name, list] of Object.entries(lookupLists)) {
  ingest
    .command(name)
    .description(`load ${name}: ${list.columns.join(', ')}`)
    .argument('<file...>')
    .addOption(format())
    .action((files: string[], options) =>
      withStore((store) => ingestLists(store, list, files, options.format)),
    );
}

program
  .command('confirm')
  .description("declare an account's revenue of a range of days confirmed")
  .argument('<account>')
  .requiredOption('--from <day>', 'first day, yyyy-mm-dd', day)
  .requiredOption('--to <day>', 'last day, yyyy-mm-dd', day)
  .action((account: string, { from, to }: { from: string; to: string }) =>
    withStore(async (store) => {
      if (to < from)
        throw new CommanderError(2, 'adtally.range', `error: --to ${to} is before --from ${from}`);
      const { days, changed } = await confirmDays(store, account, from, to);
      say(
        `${account}: ${days} ${days === 1 ? 'day' : 'days'} confirmed, ${changed} of them held unconfirmed revenue`,
      );
    }),
  );

program
  .command('loads')
  .description('list what was loaded, newest first; loads show LOAD shows one')
  .argument('[show]')
  .argument('[load]')
  .option('--json', 'as JSON')
  .option('--most <loads>', 'how many', positiveInteger, 50)
  .action(
    (show: string | undefined, load: string | undefined, { json, most }: { json?: boolean; most: number }) =>
      withStore(async (store) => {
        if (show === undefined) return writeLoads(store, process.stdout, json ? 'json' : 'table', most);
        if (show !== 'show' || load === undefined)
          throw usage('error: it is adtally loads, or adtally loads show LOAD');
        return writeLoad(store, process.stdout, load, json ?? false);
      }),
  );

program
  .command('rejects')
  .description('list rejected rows that are not replayed yet')
  .argument('[load...]')
  .option('--json', 'one JSON object a line; correct "event" and replay it')
  .option('--csv', 'as CSV; correct the event columns and replay it')
  .action((loads: string[], { json, csv }: { json?: boolean; csv?: boolean }) =>
    withStore(async (store) => {
      for (const load of loads) await requireLoad(store, load);
      await writeRejects(store, process.stdout, loads, csv ? 'csv' : json ? 'ndjson' : 'table');
    }),
  );

program
  .command('replay')
  .description("load the corrected export of a load's rejected rows, each row once")
  .argument('<load>')
  .argument('<file>', 'what adtally rejects LOAD --csv or --json wrote, corrected')
  .action((load: string, file: string) =>
    withStore(async (store) => {
      process.exitCode = await replayRejects(store, load, file);
    }),
  );

const token = program.command('token').description('login tokens');
token
  .command('create')
  .description('create a token and print it, once')
  .argument('<account>', 'whose reports it opens', accountId)
  .option('--expires <time>', 'when it ends, yyyy-mm-dd or ISO 8601', instant)
  .option('--label <text>', 'what it is for', '')
  .action((account: string, flags) => withStore((store) => createLogin(store, account, flags)));
token
  .command('list')
  .description('list tokens; the tokens themselves are not stored')
  .argument('[account]')
  .option('--json', 'as JSON')
  .action((account: string | undefined, flags) => withStore((store) => listLogins(store, account, flags)));
token
  .command('revoke')
  .description('end a token; services refuse it within 5 seconds')
  .argument('<id>')
  .action((id: string) => withStore((store) => revokeLogin(store, id)));

program
  .command('limit')
  .description('give an account a request limit of its own, or list those that have one')
  .argument('[account]', 'whose limit', accountId)
  .option('--requests <n>', 'how many requests it has in a window', positiveInteger)
  .option('--default', 'as many as every account again')
  .option('--json', 'list as JSON')
  .action((account: string | undefined, flags: LimitFlags) =>
    withStore((store) => limitRequests(store, account, flags)),
  );

let loaded: Config | undefined;
function config(): Config {
  loaded ??= loadConfig(process.env);
  return loaded;
}

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const opened = await openStore(config());
  const store = connect(opened.address);
  try {
    await work(store);
  } finally {
    await store.close();
    await opened.close();
  }
}

await run(program);
