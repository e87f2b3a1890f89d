import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { freePort } from '../../../bench/harness/free-ports.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { openRedis } from '../../../src/http/access/redis.ts';
import { openLog } from '../../../src/observe/log.ts';
import {
  type Command,
  environmentOf,
  isAlive,
  listening,
  startProcess,
  useCommands,
} from '../../support/process.ts';
import { statusWith, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const commands = useCommands();
const limit = 20;

/** Longer than any answer here takes on a busy machine, shorter than a command may wait for Redis. */
const stallMs = 400;

let redis: Command | undefined;
afterAll(async () => {
  await redis?.kill('SIGKILL');
});

async function startRedis(port: number, ...more: string[]): Promise<Command> {
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', ...more];
  const server = startProcess('redis-server', args);
  await server.said(/Ready to accept connections/);
  return server;
}

/** Two `serve` processes that share the Redis on that port. */
async function startServices(port: number) {
  const env = {
    ...environmentOf(db.address),
    PORT: '0',
    REDIS_URL: `redis://127.0.0.1:${port}`,
    RATE_LIMIT_REQUESTS: `${limit}`,
    RATE_LIMIT_WINDOW_SECONDS: '600',
  };
  const processes = [commands.start(['serve'], env), commands.start(['serve'], env)];
  const urls = await Promise.all(processes.map(listening));
  return { processes, urls };
}

async function ask(url: string, token: string): Promise<{ status: number; ms: number }> {
  const startedAt = performance.now();
  const status = await statusWith(url, token);
  return { status, ms: performance.now() - startedAt };
}

const newToken = (account: string) => createToken(db.store, { account, label: '' });

/** How many of three times the limit are allowed, asked for at every address in turn; anything but 429 fails. */
async function allowed(urls: readonly string[], account: string): Promise<number> {
  const token = await newToken(account);
  const turns = Array.from({ length: 3 * limit }, (_, n) => urls[n % urls.length] ?? '');
  const answers: number[] = [];
  while (turns.length > 0) {
    const asked = turns.splice(0, 10).map((url) => ask(url, token));
    answers.push(...(await Promise.all(asked)).map(({ status }) => status));
  }
  expect(answers.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return answers.filter((status) => status === 200).length;
}

/** Waits until every service says so of its Redis. */
async function redisIs(urls: readonly string[], up: 0 | 1): Promise<void> {
  const says = async (url: string) =>
    (await (await fetch(`${url}/metrics`)).text()).includes(`redis_up ${up}`);
  await vi.waitUntil(async () => (await Promise.all(urls.map(says))).every(Boolean), { timeout: 20_000 });
}

/** Middle of the latencies of reports asked for one by one. */
async function usualMs(url: string, account: string): Promise<number> {
  const token = await newToken(account);
  await ask(url, token);
  const times: number[] = [];
  for (let n = 0; n < 9; n++) times.push((await ask(url, token)).ms);
  return times.sort((a, b) => a - b)[4] ?? Number.NaN;
}

/** What a service logged of its Redis, in order; stops it. */
async function loggedOfRedis(service: Command): Promise<string[]> {
  const { code, stderr } = await service.kill('SIGTERM');
  expect(code).toBe(0);
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => String(JSON.parse(line).msg)).filter((message) => message.includes('Redis'));
}

const failsAndReturns = [expect.stringContaining('Redis fails'), expect.stringContaining('Redis is back')];

/** Asks without a pause until told to stop; returns every status. */
function keepAsking(urls: readonly string[], token: string): () => Promise<number[]> {
  let going = true;
  const statuses: number[] = [];
  const loops = urls.map(async (url) => {
    while (going)
      statuses.push(
        await ask(url, token)
          .then(({ status }) => status)
          .catch(() => 0),
      );
  });
  return async () => {
    going = false;
    await Promise.all(loops);
    return statuses;
  };
}

test.each([
  ['is killed', (server: Command) => void server.kill('SIGKILL')],
  ['hangs', (server: Command) => void process.kill(server.pid, 'SIGSTOP')],
])(
  'two processes allow exactly the limit together; while Redis %s each holds it alone, without a stall or a 5xx',
  async (how, fail) => {
    await redis?.kill('SIGKILL');
    const port = await freePort();
    redis = await startRedis(port);
    const { processes, urls } = await startServices(port);
    const [first = ''] = urls;
    expect(await allowed(urls, `${how} before`)).toBe(limit);

    const stop = keepAsking(urls, await newToken(`${how} during`));
    fail(redis);
    await redisIs(urls, 0);
    const during = await stop();
    expect(during.length).toBeGreaterThan(0);
    expect(during.filter((status) => status !== 200 && status !== 429)).toEqual([]);

    expect(await usualMs(first, `${how} latency`)).toBeLessThan(stallMs);
    for (const url of urls) expect(await allowed([url], `${how} alone`)).toBe(limit);

    if (how === 'hangs') process.kill(redis.pid, 'SIGCONT');
    else redis = await startRedis(port);
    await redisIs(urls, 1);
    expect(await allowed(urls, `${how} after`)).toBe(limit);
    for (const service of processes) expect(await loggedOfRedis(service)).toEqual(failsAndReturns);
    await redis.kill('SIGKILL');
    expect(isAlive(redis.pid)).toBe(false);
  },
);

test('a service that starts without its Redis answers, holds the limit alone, and shares it once Redis is there', async () => {
  await redis?.kill('SIGKILL');
  const port = await freePort();
  const { processes, urls } = await startServices(port);
  for (const url of urls) expect(await allowed([url], 'too early')).toBe(limit);
  redis = await startRedis(port);
  await redisIs(urls, 1);
  expect(await allowed(urls, 'in time')).toBe(limit);
  for (const service of processes) expect(await loggedOfRedis(service)).toEqual(failsAndReturns);
});

test('a password that Redis refuses is not in the log', async () => {
  const port = await freePort();
  await redis?.kill('SIGKILL');
  redis = await startRedis(port, '--requirepass', 'the-new-secret');
  const lines: string[] = [];
  const log = openLog('info', { write: (line) => void lines.push(line) });
  const client = openRedis(`redis://:the-old-secret@127.0.0.1:${port}`, log);
  try {
    await expect(client.connect()).rejects.toThrow();
    await vi.waitUntil(() => lines.length > 0, { timeout: 20_000 });
    expect(lines[0]).toMatch(/WRONGPASS.*Redis fails/);
    expect(lines.join('')).not.toContain('the-old-secret');
  } finally {
    client.disconnect();
  }
});

test('a database that Redis does not have is said, and nothing is counted in another one instead', async () => {
  const port = await freePort();
  await redis?.kill('SIGKILL');
  redis = await startRedis(port);
  const lines: string[] = [];
  const log = openLog('info', { write: (line) => void lines.push(line) });
  const client = openRedis(`redis://127.0.0.1:${port}/99`, log);
  try {
    await client.connect().catch(() => undefined);
    await vi.waitUntil(() => client.status === 'end', { timeout: 20_000 });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      'REDIS_URL names a database that Redis refuses (ERR DB index is out of range): this process limits requests by itself until it is started with another',
    );
    await expect(client.set('count', 1)).rejects.toThrow('Connection is closed');
  } finally {
    client.disconnect();
  }
});

describe('a count in Redis', () => {
  const service = useService(db, { REDIS_URL: inject('redisUrl'), RATE_LIMIT_REQUESTS: '2' });
  const counts = new Redis(inject('redisUrl'));
  const account = `counted-${randomBytes(6).toString('hex')}`;
  const key = `adtally:requests:${account}`;
  beforeAll(() => counts.ping());
  afterAll(() => counts.disconnect());

  async function askCounted(): Promise<[number, string | null, string | null]> {
    const { status, headers } = await service.post('/v1/campaigns', account, '{');
    return [status, headers.get('ratelimit'), headers.get('retry-after')];
  }

  test('beyond all limits is a limit, and no fault of the message', async () => {
    await counts.set(key, '9007199254740995', 'EX', 600);
    const [status, rateLimit, retryAfter] = await askCounted();
    expect([status, retryAfter]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    expect(rateLimit).toMatch(/^"account";r=0;t=\d+$/);
  });

  test('below zero is not believed: this process counts by itself', async () => {
    await counts.set(key, '-1000', 'EX', 600);
    const statuses = [(await askCounted())[0], (await askCounted())[0], (await askCounted())[0]];
    expect(statuses).toEqual([400, 400, 429]);
  });
});
