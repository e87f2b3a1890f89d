import type { Logger } from 'pino';
import { connect, selectOne } from '../../clickhouse/client.ts';
import { requireMigrated, requireTimezone } from '../../clickhouse/migrate/migrate.ts';
import { Refreshed } from '../../clickhouse/refreshed.ts';
import { type StoreSize, storeSize } from '../../ingest/history/figures.ts';
import { linksOf } from '../accounts/links.ts';
import type { Config } from '../config/config.ts';
import type { OpenStore } from '../config/store.ts';
import { AccountCache } from '../http/access/account-cache.ts';
import { Limiter } from '../http/access/limiter.ts';
import { Room } from '../http/request/body-room.ts';
import { callersBehind } from '../http/request/caller-address.ts';
import { Readiness } from '../http/server/health.ts';
import { listen } from '../http/server/listen.ts';
import { readyNowOrLater } from '../http/server/ready-later.ts';
import { throttledErrorLog } from '../observe/log.ts';
import { Metrics } from '../observe/metrics.ts';
import { openTraces } from '../observe/traces.ts';
import { createReceiveApp } from './app.ts';
import { tooManyBodies } from './body.ts';
import { BodyLoader } from './load-body.ts';
import { Mappings, requireFolder } from './mappings.ts';

export interface Receiver {
  readonly url: string;
  /** Takes no more bodies, ends those that are being loaded, for up to `stopSeconds` each, and closes all it opened. */
  stop(): Promise<void>;
}

const stopSeconds = 30;
/** How long ClickHouse may say nothing to a small question beside the loads. */
const shortMs = 10_000;
/** How long a body may take to arrive: 64 MiB at 560 kB/s. */
const arriveMs = 120_000;
const maxBodies = 2_000;
/** ClickHouse slows inserts down from a thousand parts of a partition on, and refuses them at three thousand. */
const maxParts = 800;

/**
 * Wires the service that takes events and listens; resolves once it accepts requests.
 * @throws when it cannot listen on HOST and RECEIVE_PORT, or the schema does not fit
 */
export async function startReceiver(config: Config, opened: OpenStore, log: Logger): Promise<Receiver> {
  const store = connect(opened.address);
  const asking = connect(opened.address, { idleTimeoutMs: shortMs, unlogged: true });
  const stopping = new AbortController();
  const loading = new AbortController();
  const onError = (message: string) => throttledErrorLog(log, message, 'error', stopping.signal);
  const accounts = new AccountCache({
    store: asking,
    purpose: 'ingest',
    onError: onError('tokens not refreshed'),
  });
  const readiness = new Readiness(asking, () => undefined);
  const size = new Refreshed(() => selectOne<StoreSize>(asking, storeSize), {
    everyMs: 2_000,
    onError: onError('parts not counted'),
  });
  const traces = await openTraces(config);
  const closeAll = async () => {
    stopping.abort();
    for (const refreshed of [accounts, readiness, size]) refreshed.stop();
    await traces?.stop().catch((err) => log.warn({ err }, 'spans not sent'));
    await Promise.all([store.close(), asking.close()]);
  };
  try {
    if (config.mappingsDir !== undefined) await requireFolder(config.mappingsDir);
    const prepare = async () => {
      await requireMigrated(asking);
      await requireTimezone(asking, config.reportTimezone);
      await Promise.all([accounts, readiness, size].map((refreshed) => refreshed.start()));
    };
    await readyNowOrLater(prepare, log, stopping.signal);
    const room = new Room({ maxBytes: config.receiveMegabytes * 2 ** 20, maxBodies, full: tooManyBodies });
    const metrics = new Metrics();
    metrics.gauge('adtally_bodies_held', 'Bodies that arrive or are being loaded.', () => room.bodies);
    metrics.gauge('adtally_bodies_held_bytes', 'Bytes of these bodies, unpacked.', () => room.bytes);
    metrics.gauge('process_resident_memory_bytes', 'Memory of this process.', () =>
      process.memoryUsage.rss(),
    );
    const events = metrics.counter(
      'adtally_events_received_total',
      'Events of bodies, by outcome.',
      'outcome',
    );
    const loader = new BodyLoader({
      store,
      answerTrustMs: config.answerTrustMs,
      signal: loading.signal,
      onLoaded: ({ rows, rejectedRows, repeatedRows }) => {
        const outcomes = { accepted: rows, rejected: rejectedRows, duplicates: repeatedRows };
        for (const [outcome, count] of Object.entries(outcomes)) events.inc({ outcome }, count);
      },
      onWarning: (sender, warning) => log.warn({ sender, warning }, 'events loaded with a warning'),
    });
    const app = createReceiveApp({
      accounts,
      operators: { login: (token, known) => accounts.login(token, known, 'operator') },
      store,
      links: linksOf(config),
      answerTrustMs: config.answerTrustMs,
      signingKey: config.signing?.signs,
      signal: loading.signal,
      readiness,
      metrics,
      room,
      loader,
      mappings: new Mappings(store, config.mappingsDir),
      failures: new Limiter({ name: 'failures', ...config.rateLimit }),
      isOverfull: () => (size.value?.most_parts ?? 0) > maxParts,
      isStopping: () => stopping.signal.aborted,
      callerOf: callersBehind(config.trustedProxies),
      brand: config.page.brand,
      log,
      traces,
    });
    const { url, connections } = await listen(
      app,
      { ...config, port: config.receivePort, setting: 'RECEIVE_PORT', requestTimeoutMs: arriveMs },
      log,
    );
    const stop = async () => {
      stopping.abort();
      await connections.stop(stopSeconds);
      loading.abort();
      await loader.settled();
      await closeAll();
    };
    return { url, stop };
  } catch (error) {
    await closeAll();
    throw error;
  }
}
