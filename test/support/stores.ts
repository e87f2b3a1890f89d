import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../bench/harness/free-ports.ts';
import { compile, embedded, interpretExpressions } from './compiled.ts';
import { hasProgram } from './programs.ts';
import { makeRunFolder } from './run-folder.ts';

declare module 'vitest' {
  interface ProvidedContext {
    clickhouse: { url: string; user: string; password: string };
    redisUrl: string;
  }
}

/** The server version of docker-compose.yml, the same release line as the embedded one. */
const clickhouseImage = 'clickhouse/clickhouse-server:26.7';
const redisImage = 'redis:8-alpine';

const leastFreeBytes = 6 * 2 ** 30;

interface Started<T> {
  readonly value: T;
  stop(): Promise<unknown>;
}

/**
 * One real ClickHouse and one real Redis for the whole run: given addresses first, else the embedded server
 * and a `redis-server` (installed with apt when it is missing and that is possible), else containers.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started: (() => Promise<unknown> | unknown)[] = [];
  const stop = async () => {
    for (const end of started.reverse()) await end();
  };
  try {
    started.push(useMemoryForFiles());
    started.push((await compile()).remove);
    // The thorough tests share an engine as it is delivered.
    const thorough = project.vite.config.mode === 'thorough';
    if (!thorough) await interpretExpressions();
    const clickhouse = await startClickHouse();
    started.push(clickhouse.stop);
    if (thorough) await interpretExpressions();
    project.provide('clickhouse', clickhouse.value);
    const redis = await startRedis();
    started.push(redis.stop);
    project.provide('redisUrl', redis.value);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/**
 * Everything that tests write has one folder, removed at the end. It lies in memory where there is room: ClickHouse
 * syncs each change of a schema to the disk, which makes migrations three times as slow, and no test survives the
 * machine.
 */
function useMemoryForFiles(): () => void {
  const memory = '/dev/shm';
  const home = makeRunFolder(freeBytes(memory) > leastFreeBytes ? memory : tmpdir());
  // A test reads as another user.
  chmodSync(home, 0o755);
  process.env.TMPDIR = home;
  return () => rmSync(home, { recursive: true, force: true });
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

async function startClickHouse(): Promise<Started<{ url: string; user: string; password: string }>> {
  const url = process.env.CLICKHOUSE_URL;
  if (url) {
    const user = process.env.CLICKHOUSE_USER ?? 'default';
    return { value: { url, user, password: process.env.CLICKHOUSE_PASSWORD ?? '' }, stop: async () => {} };
  }
  const { acquireEmbedded, EmbeddedUnavailable } = await embedded();
  const dataDir = mkdtempSync(join(tmpdir(), 'adtally-test-'));
  try {
    const lease = await acquireEmbedded(dataDir);
    return {
      value: lease.address,
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
  if (hasProgram('redis-server')) return startRedisServer();
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
