import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import pino, { type Logger } from 'pino';
import { connect } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { curlFile } from '../../clickhouse/embedded/state.ts';
import { migrateEmbedded } from '../../clickhouse/migrate/migrate-embedded.ts';
import type { Config } from '../config/config.ts';
import { type OpenStore, openStore } from '../config/store.ts';
import { commandHere } from '../config/version.ts';
import type { Service } from '../http/service.ts';
import { openLog, turnByTurn } from '../observe/log.ts';
import { config, line, ofServer, print, quotedForShell, say, wasNew } from './command/command.ts';
import { curlLines, loadDemo, newTokenAccount, pageLink } from './demo/demo.ts';

/** `serve`, `demo` and `clickhouse`: they run until a signal. */
export function addServeCommands(program: Command): void {
  program
    .command('serve')
    .description('run the HTTP service')
    .action(() => runService(config(), loadHttp));
  program
    .command('demo')
    .description('run the HTTP service on the embedded ClickHouse, with sample data if it is empty')
    .action(() => runDemo(config()));
  program
    .command('receive')
    .description('take events over HTTP: POST /v1/events on RECEIVE_PORT')
    .action(() => runService(config(), loadReceive));
  program
    .command('clickhouse')
    .description('run the embedded ClickHouse by itself, for other commands to share')
    .action(() => runEmbedded(config()));
}

/** Loaded here: the other commands start in half the time without HTTP, Redis and metrics. */
const loadHttp = async () => (await import('../http/service.ts')).startService;
const loadReceive = async () => (await import('../receive/service.ts')).startReceiver;

/** `serve` and `receive`: run until a signal, then stop the service before ClickHouse. */
async function runService(config: Config, load: typeof loadHttp | typeof loadReceive): Promise<void> {
  await withOpenStore(config, load, async (opened, log) => {
    const start = await load();
    const service: Service = await start(config, opened, log);
    log.info(`listening on ${service.url}`);
    if (service.adminUrl) log.info(`/readyz and /metrics on ${service.adminUrl}`);
    await stopAtEnd([service], opened, log);
  });
}

/** `demo`: `serve`, with sample data in an empty database and `curl` commands to try it. */
async function runDemo(config: Config): Promise<void> {
  await withOpenStore(config, loadHttp, async (opened, log) => {
    // First of all, so that a port in use ends this before there are tokens, which are shown only once.
    const service = await (await loadHttp())(config, opened, log);
    const services: { stop(): Promise<void> }[] = [service];
    const store = connect(opened.address);
    const work = async () => {
      const receiver = await (await loadReceive())(config, opened, log);
      services.push(receiver);
      const accounts = await loadDemo(store, { dataDir: config.dataDir, now: new Date(), say });
      return { receiver, accounts };
    };
    const { receiver, accounts } = await work()
      .finally(() => store.close())
      .catch(async (error: unknown) => {
        await Promise.all(services.map((each) => each.stop()));
        throw error;
      });
    // What there is to take along goes to standard output, and nothing else does.
    say(
      accounts.length
        ? `\nThese tokens are shown only once. Each link opens the reports of its account in a browser, signed in:\n`
        : `\nNothing was loaded now, and tokens are shown only once. For a new one:\n\n  TOKEN=$(${commandHere()} token create ${newTokenAccount})\n\nIt signs you in at ${service.url}/app, too.`,
    );
    for (const { account, token } of accounts) print(line([account, token, pageLink(service.url, token)]));
    say('\nReports to try, in another terminal:\n');
    for (const curl of curlLines(service.url, accounts, new Date())) print(curl);
    say(
      `\nEvents are taken on ${receiver.url}/v1/events. For a token:\n\n  ${commandHere()} token create --for ingest my-server\n`,
    );
    log.info(`listening on ${service.url}; Ctrl-C stops`);
    await stopAtEnd(services, opened, log);
  });
}

/** `clickhouse`: says how its owner reaches it; passwords stay in files that only the owner can read. */
async function runEmbedded({ dataDir, clickhouse }: Config): Promise<void> {
  const lease = await acquireEmbedded(dataDir, clickhouse.database);
  try {
    say(`ClickHouse listens on ${lease.url}; Ctrl-C stops it. To look at it:\n`);
    print(`curl -K ${quotedForShell(curlFile(dataDir))} -d 'SHOW TABLES FROM ${clickhouse.database}'`);
    await untilStopped(lease.lost);
  } finally {
    await lease.release();
  }
}

/** Stops services at a signal, and when its ClickHouse has ended for good, which is a failure. */
async function stopAtEnd(
  services: readonly { stop(): Promise<void> }[],
  opened: OpenStore,
  log: Logger,
): Promise<void> {
  try {
    await untilStopped(opened.lost);
    log.info('stopping');
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

/** @param load loads what the work is made of, while ClickHouse starts */
async function withOpenStore(
  config: Config,
  load: () => Promise<unknown>,
  work: (opened: OpenStore, log: Logger) => Promise<void>,
): Promise<void> {
  // Each 64 KiB that pass through are a buffer outside the heap, and make V8 mark the heap step by step on helper
  // threads: a large report took a quarter longer. Marking it in one go takes 50 ms, once in a dozen reports of 113 MB.
  setFlagsFromString('--no-incremental-marking');
  // Node.js 24 collects young buffers too late (nodejs/node#61967) and would mark the heap three times in each of them:
  // a fifth longer, and 224 MB of memory instead of 186.
  const v8 = Number.parseInt(process.versions.v8, 10);
  if (v8 === 13) setFlagsFromString('--scavenger-max-new-space-capacity-mb=4');
  // Node.js 20 and 22 let the place of young buffers grow to 48 MB. As small as it begins, eight callers of a large
  // report take 141 MB instead of 147, with zstd 112 instead of 129.
  if (v8 < 13) setFlagsFromString('--semi-space-growth-factor=1');
  // Lines that cannot be written, say on a full disk, wait for the next ones, and end nothing. When too many wait, each new
  // one is dropped, and those that wait are tried again.
  const written = pino.destination({ dest: 2, sync: true, maxLength: 16 << 20 }).on('error', () => {});
  written.on('drop', () => written.flush());
  const log = openLog(config.logLevel, turnByTurn(written));
  const opening = openStore(config);
  await Promise.allSettled([opening, load()]);
  const opened = await opening;
  try {
    if (!config.clickhouse.url) {
      const applied = await migrateEmbedded(config.dataDir, opened.address, config.reportTimezone);
      const store = `the store in ${config.dataDir}`;
      if (await wasNew(applied)) say(`the tables of ${store} were created`);
      else if (applied.length) say(`${store} was migrated: ${applied.join(', ')}`);
    }
    await work(opened, log);
  } catch (error) {
    throw ofServer(opened.address.url, error);
  } finally {
    await opened.close();
  }
}

/**
 * Waits for SIGINT or SIGTERM; a second one ends the process at once.
 * @throws when `lost` resolves before a signal comes
 */
async function untilStopped(lost: Promise<void>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
      resolve();
    };
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
    void lost.then(() =>
      reject(new Error('the embedded ClickHouse has ended; see clickhouse.log in DATA_DIR')),
    );
  });
}
