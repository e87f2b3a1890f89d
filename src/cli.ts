#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { check } from '../clickhouse/check.ts';
import { connect, type Store } from '../clickhouse/client.ts';
import { acquireEmbedded } from '../clickhouse/embedded/embedded.ts';
import { migrate } from '../clickhouse/migrate.ts';
import { confirmDays, listTables } from '../ingest/names.ts';
import { catalog } from './catalog.ts';
import { ingestEvents, ingestLists } from './cli-ingest.ts';
import { runDemo, runService, untilStopped } from './cli-serve.ts';
import { type Config, ConfigError, loadConfig } from './config.ts';
import { openStore } from './store.ts';
import { createToken, listTokens, revokeToken } from './tokens.ts';

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
    const { clickhouse, reportTimezone } = config();
    // Opening the embedded store migrates it.
    if (!clickhouse.url) {
      await withStore(async () => {});
      say('the store is up to date');
      return;
    }
    const { url, user, password, database } = clickhouse;
    const applied = await migrate({ url, user, password, database }, reportTimezone);
    say(applied.length ? `applied ${applied.join(', ')}` : 'the store is up to date');
  });

program
  .command('check')
  .description('compare the live schema with the catalog')
  .action(() =>
    withStore(async (store) => {
      const differences = await check(store, catalog);
      for (const difference of differences) print(difference);
      say(differences.length ? `${differences.length} differences` : 'the schema agrees with the catalog');
      if (differences.length) process.exitCode = 1;
    }),
  );

const ingest = program.command('ingest').description('load events, names and confirmations');
const format = () =>
  new Option('--format <format>', 'the format, where the file name does not tell').choices([
    'ndjson',
    'csv',
    'parquet',
  ]);

ingest
  .command('events')
  .description('load events; - is standard input, a folder or a quoted pattern is many files')
  .argument('<file...>')
  .option('--chunk-bytes <bytes>', 'how much is sent at once', positiveInteger, 64 << 20)
  .addOption(format())
  .option('--json', 'print what was loaded as JSON')
  .action((files: string[], options) => withStore((store) => ingestEvents(store, files, options)));

for (const [name, list] of Object.entries(listTables)) {
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
      const days = await confirmDays(store, account, from, to);
      say(`${account}: revenue of ${days} ${days === 1 ? 'day' : 'days'} confirmed`);
    }),
  );

const token = program.command('token').description('login tokens');
token
  .command('create')
  .description('create a token and print it, once')
  .argument('<account>', 'whose reports it opens', accountId)
  .option('--expires <time>', 'when it ends, yyyy-mm-dd or ISO 8601', instant)
  .option('--label <text>', 'what it is for', '')
  .action((account: string, options: { expires?: Date; label: string }) =>
    withStore(async (store) => print(await createToken(store, { account, ...options }))),
  );
token
  .command('list')
  .description('list tokens; the tokens themselves are not stored')
  .argument('[account]')
  .option('--json', 'as JSON')
  .action((account: string | undefined, { json }: { json?: boolean }) =>
    withStore(async (store) => {
      const tokens = (await listTokens(store, account === undefined ? {} : { account })).map(
        ({ id, account, label, created, expires, revoked }) => ({
          id,
          account,
          label,
          created,
          expires,
          revoked,
        }),
      );
      if (json) print(JSON.stringify(tokens));
      else
        for (const row of tokens)
          print(
            Object.values(row)
              .map((value) => value || '-')
              .join('\t'),
          );
    }),
  );
token
  .command('revoke')
  .description('end a token; services refuse it within 5 seconds')
  .argument('<id>')
  .action((id: string) =>
    withStore(async (store) => {
      if (!(await revokeToken(store, id)))
        throw new Error(`there is no token ${id}; adtally token list shows them`);
      say(`token ${id} is revoked`);
    }),
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

function positiveInteger(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('It must be a whole number above 0.');
  return number;
}

function day(text: string): string {
  if (!z.iso.date().safeParse(text).success)
    throw new InvalidArgumentError('It must be a day that exists, as yyyy-mm-dd.');
  return text;
}

function instant(text: string): Date {
  if (!z.union([z.iso.date(), z.iso.datetime({ offset: true })]).safeParse(text).success) {
    throw new InvalidArgumentError('It must be yyyy-mm-dd or an ISO 8601 time such as 2027-01-31T12:00:00Z.');
  }
  return new Date(text);
}

function accountId(text: string): string {
  if (text === '' || [...text].length > 128)
    throw new InvalidArgumentError('It must have 1 to 128 characters.');
  return text;
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has printed its own errors; asking for help is no error.
    if (error.code.startsWith('adtally.')) say(error.message);
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    const usage = error instanceof ConfigError;
    say(`error: ${error instanceof Error ? error.message || String(error) : String(error)}`);
    process.exitCode = usage ? 2 : 1;
  }
}
