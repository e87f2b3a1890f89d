import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { catalog } from '../catalog/catalog.ts';
import { connect, type Store } from '../clickhouse/client.ts';
import { requireTimezone } from '../clickhouse/migrate/migrate.ts';
import { Reader } from '../clickhouse/reader.ts';
import { isTransient, retrying } from '../clickhouse/retry.ts';
import type { Config } from './config.ts';
import { AccountCache } from './http/access/account-cache.ts';
import { Limiter } from './http/access/limiter.ts';
import { createApp } from './http/app.ts';
import { Problem } from './http/problems.ts';
import { AccountPlacements } from './http/report/account-placements.ts';
import { LastLoad } from './http/report/last-load.ts';
import { ReportGate } from './http/report/report-gate.ts';
import { RowCounts } from './http/report/row-counts.ts';
import { Connections } from './http/server/connections.ts';
import { malformedResponse, refuseMalformed } from './http/server/malformed.ts';
import { Metrics } from './observe/metrics.ts';
import { timestampIn } from './report/timestamp.ts';
import type { OpenStore } from './store.ts';

export interface Service {
  readonly url: string;
  /** Stops accepting, lets running answers finish (at most `stopSeconds`), then closes everything it opened. */
  stop(): Promise<void>;
}

/** How long running answers may take after a stop was asked for. */
const stopSeconds = 30;

/**
 * A request is two dates: who takes longer to send one, trickles. Idle connections outlast the 60 s of common
 * load balancers, so that these close first and never send a request into a closing connection.
 */
const serverOptions = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
};

/** Wires the service on an open store and listens; resolves once it accepts requests. */
export async function startService(config: Config, opened: OpenStore, log: Logger): Promise<Service> {
  const idleTimeoutMs = config.reportTimeoutSeconds * 1000;
  const store = connect(opened.reporter, { idleTimeoutMs });
  const reader = new Reader(opened.reporter, idleTimeoutMs);
  const tokens = new AccountCache({ store, onError: throttledErrorLog(log, 'tokens not refreshed') });
  const lastLoad = new LastLoad(store, throttledErrorLog(log, 'time of the last load not refreshed'));
  const placements = new AccountPlacements(
    store,
    throttledErrorLog(log, 'placements not refreshed: reports ask all shards'),
  );
  const rowCounts = new RowCounts(reader, {
    onError: throttledErrorLog(log, 'rows of reports not read from system.query_log'),
  });
  const redis = config.redisUrl ? openRedis(config.redisUrl, log) : undefined;
  const stopping = new AbortController();
  const closeAll = async () => {
    stopping.abort();
    tokens.stop();
    lastLoad.stop();
    placements.stop();
    redis?.disconnect();
    await rowCounts.stop();
    reader.close();
    await store.close();
  };
  try {
    let timestamp: ((time: Date) => string) | undefined;
    const prepare = async () => {
      timestamp = timestampIn(await requireTimezone(store, config.reportTimezone));
      await Promise.all([tokens.start(), lastLoad.start(), placements.start()]);
    };
    await prepare().catch((error: unknown) => {
      // A store that does not fit is for a person to mend; one that does not answer may come back by itself.
      if (!(error instanceof Error) || !isTransient(error)) throw error;
      log.warn({ err: error }, 'ClickHouse does not answer: not ready until it does');
      void retrying(prepare, { giveUpAfterMs: Number.POSITIVE_INFINITY, signal: stopping.signal })
        .then(() => log.info('ClickHouse answers: ready'))
        .catch((err: unknown) => {
          if (!stopping.signal.aborted) log.fatal({ err }, 'never ready: the store does not fit');
        });
    });
    const gate = new ReportGate({ maxConcurrent: config.maxConcurrentReports });
    const quota = { ...config.rateLimit, ...(redis && { redis }) };
    const app = createApp({
      store,
      reader,
      catalog,
      accounts: tokens,
      log,
      timeoutSeconds: config.reportTimeoutSeconds,
      gate,
      routingOf: (account) => placements.routingOf(account),
      metrics: measure(store, gate, redis),
      rowCounts,
      requests: new Limiter({ name: 'requests', ...quota }),
      failures: new Limiter({ name: 'failures', ...quota }),
      sendTimeoutSeconds: config.sendTimeoutSeconds,
      lastUpdateTime: () => {
        if (!timestamp) throw new Problem('internal_error', 'the service is starting; try again');
        return timestamp(new Date());
      },
      lastLoad: () => lastLoad.finishedAt,
    });
    const { connections, url } = await new Promise<{ connections: Connections; url: string }>(
      (resolve, reject) => {
        const { host: hostname, port } = config;
        const server = createServer(serverOptions);
        const connections = new Connections(server);
        refuseMalformed(server, connections);
        // What is left of a body is read on by Node itself, as long as the request may take.
        const options = { hostname, errorHandler: malformedResponse, autoCleanupIncoming: false };
        server.on('request', getRequestListener(app.fetch, options));
        server.once('error', reject);
        server.listen(port, hostname, () => {
          const address = server.address();
          const bound = address !== null && typeof address === 'object' ? address.port : port;
          resolve({
            connections,
            url: `http://${hostname.includes(':') ? `[${hostname}]` : hostname}:${bound}`,
          });
        });
      },
    );
    return {
      url,
      stop: async () => {
        await connections.stop(stopSeconds);
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Logs a failure that repeats every second or two only once in a minute. */
function throttledErrorLog(log: Logger, message: string): (error: unknown) => void {
  let quietUntil = 0;
  return (err) => {
    if (Date.now() < quietUntil) return;
    quietUntil = Date.now() + 60_000;
    log.error({ err }, message);
  };
}

function measure(store: Store, gate: ReportGate, redis: Redis | undefined): Metrics {
  const metrics = new Metrics();
  metrics.gauge('adtally_reports_running', 'Reports that run now.', () => gate.running);
  metrics.gauge('adtally_reports_waiting', 'Reports that wait for a place.', () => gate.waiting);
  metrics.gauge('adtally_clickhouse_up', 'Whether ClickHouse answers.', async () =>
    (await store.ping()).success ? 1 : 0,
  );
  if (redis) {
    metrics.gauge('adtally_redis_up', 'Whether Redis is connected.', () =>
      redis.status === 'ready' ? 1 : 0,
    );
  }
  return metrics;
}

/** Redis for the limits; one log line when it fails and one when it is back. */
function openRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 500,
    // A Redis that hangs fails as a whole: not every request waits until it gives up on its own command.
    socketTimeout: 1_000,
  });
  let failing = false;
  redis.on('error', (err) => {
    if (!failing) log.warn({ err }, 'Redis fails: this process limits requests alone');
    failing = true;
  });
  redis.on('ready', () => {
    if (failing) log.info('Redis is back: limits are shared again');
    failing = false;
  });
  return redis;
}
