import type { Server } from 'node:http';
import { serve as listen } from '@hono/node-server';
import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { connect } from '../clickhouse/client.ts';
import { requireTimezone } from '../clickhouse/migrate.ts';
import { createApp } from './app.ts';
import { catalog } from './catalog.ts';
import { timestampIn } from './clock.ts';
import type { Config } from './config.ts';
import { LastLoad } from './http/last-load.ts';
import { TokenCache } from './http/token-cache.ts';
import type { OpenStore } from './store.ts';

export interface Service {
  readonly url: string;
  /** Stops accepting, lets running answers finish (at most `stopSeconds`), then closes everything it opened. */
  stop(): Promise<void>;
}

/** How long running answers may take after a stop was asked for. */
const stopSeconds = 30;

/** Wires the service on an open store and listens; resolves once it accepts requests. */
export async function startService(config: Config, opened: OpenStore, log: Logger): Promise<Service> {
  const store = connect(opened.reporter, { idleTimeoutMs: config.reportTimeoutSeconds * 1000 });
  const tokens = new TokenCache({ store, onError: (err) => log.error({ err }, 'tokens not refreshed') });
  const lastLoad = new LastLoad(store, (err) => log.error({ err }, 'time of the last load not refreshed'));
  const redis = config.redisUrl ? openRedis(config.redisUrl, log) : undefined;
  const closeAll = async () => {
    tokens.stop();
    lastLoad.stop();
    redis?.disconnect();
    await store.close();
  };
  try {
    const timestamp = timestampIn(await requireTimezone(store, config.reportTimezone));
    await Promise.all([tokens.start(), lastLoad.start()]);
    const app = createApp({
      store,
      catalog,
      accounts: tokens,
      log,
      timeoutSeconds: config.reportTimeoutSeconds,
      rateLimit: { ...config.rateLimit, ...(redis && { redis }) },
      lastUpdateTime: () => timestamp(new Date()),
      lastLoad: () => lastLoad.finishedAt,
    });
    const { server, url } = await new Promise<{ server: Server; url: string }>((resolve, reject) => {
      const server = listen({ fetch: app.fetch, hostname: config.host, port: config.port }, ({ port }) =>
        resolve({
          server,
          url: `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`,
        }),
      ) as Server;
      server.once('error', reject);
    });
    return {
      url,
      stop: async () => {
        await stopServer(server);
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function stopServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // A kept-alive connection becomes idle only after its answer has ended.
  const idle = setInterval(() => server.closeIdleConnections(), 100);
  const limit = setTimeout(() => server.closeAllConnections(), stopSeconds * 1000);
  await closed;
  clearInterval(idle);
  clearTimeout(limit);
}

function openRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1 });
  redis.on('error', (err) => log.warn({ err }, 'Redis fails; this process limits requests alone'));
  return redis;
}
