import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { TestProject } from 'vitest/node';
import { acquireEmbedded, EmbeddedUnavailable } from '../../clickhouse/embedded/embedded.ts';

declare module 'vitest' {
  interface ProvidedContext {
    clickhouse: { url: string; user: string; password: string };
    redisUrl: string;
  }
}

/** The server version of docker-compose.yml, the same release line as the embedded one. */
const clickhouseImage = 'clickhouse/clickhouse-server:26.7';
const redisImage = 'redis:8-alpine';

interface Started<T> {
  readonly value: T;
  stop(): Promise<unknown>;
}

/**
 * One real ClickHouse and one real Redis for the whole run: given addresses first, else the embedded server
 * and a `redis-server` (installed with apt when it is missing and that is possible), else containers.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const clickhouse = await startClickHouse();
  const redis = await startRedis().catch(async (error) => {
    await clickhouse.stop();
    throw error;
  });
  project.provide('clickhouse', clickhouse.value);
  project.provide('redisUrl', redis.value);
  return async () => {
    await Promise.all([clickhouse.stop(), redis.stop()]);
  };
}

async function startClickHouse(): Promise<Started<{ url: string; user: string; password: string }>> {
  const url = process.env.CLICKHOUSE_URL;
  if (url) {
    const user = process.env.CLICKHOUSE_USER ?? 'default';
    return { value: { url, user, password: process.env.CLICKHOUSE_PASSWORD ?? '' }, stop: async () => {} };
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'adtally-test-'));
  try {
    const lease = await acquireEmbedded(dataDir);
    return {
      value: { url: lease.url, user: 'default', password: '' },
      stop: async () => {
        await lease.release();
        rmSync(dataDir, { recursive: true, force: true });
      },
    };
  } catch (error) {
    if (!(error instanceof EmbeddedUnavailable)) throw error;
    const { GenericContainer } = await import('testcontainers');
    const container = await new GenericContainer(clickhouseImage)
      .withEnvironment({ CLICKHOUSE_PASSWORD: 'test' })
      .withExposedPorts(8123)
      .start()
      .catch((cause: unknown) => {
        throw new Error(`no ClickHouse for the tests: ${error.message} Nor does Docker answer.`, { cause });
      });
    return {
      value: {
        url: `http://${container.getHost()}:${container.getMappedPort(8123)}`,
        user: 'default',
        password: 'test',
      },
      stop: () => container.stop(),
    };
  }
}

async function startRedis(): Promise<Started<string>> {
  if (process.env.REDIS_URL) return { value: process.env.REDIS_URL, stop: async () => {} };
  if (hasRedisServer()) return startRedisServer();
  const { GenericContainer } = await import('testcontainers');
  const container = await new GenericContainer(redisImage)
    .withExposedPorts(6379)
    .start()
    .catch((cause: unknown) => {
      throw new Error(
        'no Redis for the tests: set REDIS_URL, or install redis-server (apt-get install redis-server), or start Docker',
        { cause },
      );
    });
  return {
    value: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: () => container.stop(),
  };
}

async function startRedisServer(): Promise<Started<string>> {
  const port = await freePort();
  const server = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '']);
  const url = `redis://127.0.0.1:${port}`;
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: 100 });
  client.on('error', () => {
    // Not up yet; the ping below waits for it.
  });
  await client.ping();
  client.disconnect();
  return {
    value: url,
    stop: async () => {
      server.kill();
      await once(server, 'exit');
    },
  };
}

function hasRedisServer(): boolean {
  if (succeeds('redis-server', ['--version'])) return true;
  if (process.getuid?.() !== 0 || !succeeds('apt-get', ['--version'])) return false;
  return (
    succeeds('apt-get', ['update', '-qq']) &&
    succeeds('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'])
  );
}

function succeeds(command: string, args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
