import { setFlagsFromString } from 'node:v8';
import pino, { type Logger } from 'pino';
import { connect } from '../../clickhouse/client.ts';
import type { Config } from '../config.ts';
import { openLog } from '../observe/log.ts';
import { type Service, startService } from '../service.ts';
import { type OpenStore, openStore } from '../store.ts';
import { curlLines, loadDemo } from './demo.ts';

/** `serve`: runs until a signal, then stops the service before the store it opened. */
export async function runService(config: Config): Promise<void> {
  await withOpenStore(config, async (opened, log) => {
    const service = await startService(config, opened, log);
    log.info(`listening on ${service.url}`);
    await stopAtEnd(service, opened, log);
  });
}

/** `demo`: `serve` with a sample in an empty store, and `curl` lines to try it. */
export async function runDemo(config: Config): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  await withOpenStore(config, async (opened, log) => {
    const store = connect(opened.address);
    const accounts = await loadDemo(store, { dataDir: config.dataDir, now: new Date(), say }).finally(() =>
      store.close(),
    );
    const service = await startService(config, opened, log);
    for (const { account, token } of accounts) say(`${account}\t${token}`);
    say(
      accounts.length
        ? '\nThe tokens above are shown once. Try:\n'
        : '\nThe sample is loaded; its tokens were shown once. For a new one:\n\n  TOKEN=$(npm run -s adtally -- token create northwind-outdoor)\n',
    );
    say(`${curlLines(service.url, accounts, new Date())}\n`);
    log.info(`listening on ${service.url}; Ctrl-C stops`);
    await stopAtEnd(service, opened, log);
  });
}

/** Stops the service at a signal, and when its store is gone for good, which fails. */
async function stopAtEnd(service: Service, opened: OpenStore, log: Logger): Promise<void> {
  try {
    await untilStopped(opened.lost);
    log.info('stopping');
  } finally {
    await service.stop();
  }
}

async function withOpenStore(
  config: Config,
  work: (opened: OpenStore, log: Logger) => Promise<void>,
): Promise<void> {
  // Every 64 KiB that pass through are a buffer outside the heap, and make V8 mark the heap, little by little and
  // with helper threads: a large report took a quarter longer. The heap is small; marked at once it takes 5 ms.
  setFlagsFromString('--no-incremental-marking');
  const log = openLog(config.logLevel, pino.destination({ dest: 2, sync: true }));
  const opened = await openStore(config);
  try {
    await work(opened, log);
  } finally {
    await opened.close();
  }
}

/**
 * Waits for SIGINT or SIGTERM; a second one ends the process at once.
 * @throws when `lost` resolves before a signal comes
 */
export async function untilStopped(lost: Promise<void>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
      resolve();
    };
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
    void lost.then(() =>
      reject(new Error('the embedded ClickHouse is gone; clickhouse.log in DATA_DIR says why')),
    );
  });
}
