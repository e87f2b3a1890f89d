import { once, setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, inject, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { insertLarge } from '../../support/accounts.ts';
import { environmentOf, listening, openReport, peakMemoryMb, useCommands } from '../../support/process.ts';
import { seededRandom, testRounds, testSeed } from '../../support/random.ts';
import { metric } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { readAt } from '../slow-callers.ts';

/** Where hostile callers go, as whom, and when they stop. */
interface Target {
  readonly url: string;
  readonly token: string;
  readonly signal: AbortSignal;
}

interface Request {
  readonly path?: string;
  readonly token?: string;
  readonly version?: string;
}

const year = '{"start_time":"2026-01-01","end_time":"2026-12-31"}';

function message({ path = '/v1/campaigns', token = '', version = '1.1' }: Request): string {
  return `POST ${path} HTTP/${version}\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${year.length}\r\n\r\n${year}`;
}

const largest = '/v1/campaigns/breakdowns/device_creative_date';

/** Each does harm of one kind for a few seconds at most; their names are told when one fails. */
const attacks: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  'asks for all and reads nothing': (target) =>
    onSocket(target, async (socket) => {
      socket.pause();
      socket.write(message({ path: largest, token: target.token }));
      await delay(20_000, undefined, { signal: target.signal });
    }),
  'asks for all and reads a little each second': (target) =>
    onSocket(target, async (socket) => {
      socket.write(message({ path: largest, token: target.token }));
      for (let second = 0; second < 20; second++) {
        socket.pause();
        await delay(1_000, undefined, { signal: target.signal });
        socket.read(2_048);
      }
    }),
  'hangs up in the middle': (target) =>
    onSocket(target, async (socket) => {
      socket.write(message({ path: largest, token: target.token }));
      await Promise.race([once(socket, 'data'), delay(2_000, undefined, { signal: target.signal })]);
    }),
  'asks over HTTP/1.0': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(message({ version: '1.0', path: largest, token: target.token }));
      await once(socket, 'close');
    }),
  'asks fifty times without waiting for an answer': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(message({ token: target.token }).repeat(50));
      await delay(3_000, undefined, { signal: target.signal });
    }),
  'sends what is no HTTP': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(`${'\0\xff'.repeat(500)}\r\n\r\n`);
      await Promise.race([once(socket, 'close'), delay(3_000, undefined, { signal: target.signal })]);
    }),
  'sends half a message': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(message({ token: target.token }).slice(0, -20));
      await delay(5_000, undefined, { signal: target.signal });
    }),
  'guesses tokens': (target) =>
    onSocket(target, async (socket) => {
      for (let guess = 0; guess < 30; guess++) socket.resume().write(message({ token: `guess-${guess}` }));
      await delay(2_000, undefined, { signal: target.signal });
    }),
  'asks what needs no token': (target) =>
    onSocket(target, async (socket) => {
      for (const path of ['/readyz', '/metrics', '/openapi.json', '/healthz', '/docs']) {
        socket.resume().write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(20));
      }
      await delay(2_000, undefined, { signal: target.signal });
    }),
};

async function onSocket({ url, signal }: Target, work: (socket: Socket) => Promise<unknown>): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.66' }).on(
    'error',
    () => {
      // The service may hang up on them whenever it likes.
    },
  );
  try {
    await once(socket, 'connect', { signal });
    await work(socket);
  } catch (error) {
    if (!signal.aborted && (error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    socket.destroy();
  }
}

const db = useStore();
const commands = useCommands();
const numbered = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}-${n}`);
const hostile = numbered('hostile', 10);
const large = numbered('large', 8);
const small = numbered('small', 80);
const phones = numbered('phone', 2);
const tokens = new Map<string, string>();
let url: string;
let pid: number;

beforeAll(async () => {
  // 7 MB each, which the buffers of a connection do not take, and 20 MB.
  await insertLarge(db.store, [...hostile, ...large], 21_000);
  await insertLarge(db.store, phones, 60_000);
  await db.store.command({
    query: `INSERT INTO campaigns_date (account_id, day, campaign_id, impressions)
            SELECT concat('small-', toString(number)), toDate('2026-05-01'), 'campaign', 1000 + number FROM numbers(80)`,
  });
  for (const account of [...hostile, ...large, ...small, ...phones]) {
    tokens.set(account, await createToken(db.store, { account, label: '' }));
  }
  const address = { ...inject('clickhouse'), database: db.address.database };
  // Answers in memory need no place: nobody is spared the gate here.
  const serve = commands.start(['serve'], {
    ...environmentOf(address),
    PORT: '0',
    ANSWER_CACHE_MEGABYTES: '0',
    RATE_LIMIT_REQUESTS: '100000',
  });
  url = await listening(serve);
  pid = serve.pid;
});

const ask = (account: string, path?: string): Promise<IncomingMessage> =>
  openReport(url, { token: tokens.get(account) ?? '', ...(path && { path }) });

const gauge = (name: string) => metric(url, `adtally_reports_${name}`);

/** As a client does it: told that too many reports run, it asks once more when it may. */
async function askPolitely(account: string, path?: string): Promise<IncomingMessage> {
  const answer = await ask(account, path);
  if (answer.statusCode !== 429) return answer;
  answer.resume();
  await delay(Number(answer.headers['retry-after']) * 1_000);
  return await ask(account, path);
}

interface Asked {
  readonly what: string;
  /** From the request to the first byte. */
  readonly waitMs: number;
  /** What is wrong with the answer. */
  readonly fault: string | undefined;
}

/** Every account asks now and then until the signal; what came of each request. */
async function askHonestly(seed: number, ended: AbortSignal): Promise<Asked[]> {
  setMaxListeners(0, ended);
  const random = seededRandom(seed);
  const asked: Asked[] = [];
  const rest = (ms: number) => delay(ms, undefined, { signal: ended }).catch(() => undefined);
  const asking = [...large, ...small].map(async (account) => {
    await rest(random() * 12_000);
    while (!ended.aborted) {
      const isLarge = large.includes(account);
      const startedAt = performance.now();
      const answer = await askPolitely(account, isLarge ? undefined : '/v1/campaigns');
      const waitMs = performance.now() - startedAt;
      const content = await text(answer).catch((error: Error) => error.message);
      const right = isLarge
        ? content.match(/"impressions":1,/g)?.length === 21_000
        : content.includes(`"impressions":${1000 + Number(account.slice(6))},`);
      const fault = answer.statusCode === 200 && answer.complete && right ? undefined : content.slice(0, 300);
      asked.push({ what: `${account}: ${answer.statusCode}`, waitMs, fault });
      await rest(10_000 + random() * 10_000);
    }
  });
  await Promise.all(asking);
  return asked;
}

/** Every account has four callers; one of them asks for all and reads nothing, the others do whatever is nasty. */
async function attack(seed: number, signal: AbortSignal): Promise<Record<string, number>> {
  const random = seededRandom(seed);
  const done: Record<string, number> = {};
  const names = Object.keys(attacks);
  const caller = async (account: string, n: number) => {
    while (!signal.aborted) {
      const name = (n === 0 ? names[0] : names[Math.floor(random() * names.length)]) ?? '';
      done[name] = (done[name] ?? 0) + 1;
      await attacks[name]?.({ url, token: tokens.get(account) ?? '', signal });
      await delay(500, undefined, { signal }).catch(() => undefined);
    }
  };
  await Promise.all(hostile.flatMap((account) => [0, 1, 2, 3].map((n) => caller(account, n))));
  return done;
}

function summary(asked: readonly Asked[]): string {
  const waits = asked.map(({ waitMs }) => Math.round(waitMs)).toSorted((a, b) => a - b);
  const at = (share: number) => waits[Math.floor(share * (waits.length - 1))];
  return `${asked.length} reports; the first byte after ${at(0.5)} ms (median), ${at(0.99)} (p99), ${at(1)} (worst)`;
}

const faults = (asked: readonly Asked[]) => asked.filter(({ fault }) => fault !== undefined);

test(`of 100 accounts 10 are hostile: all others get every report, whole and right, and phones are not cut off (seed ${testSeed})`, async () => {
  const alone = await askHonestly(testSeed, AbortSignal.timeout(15_000));
  console.info(`alone: ${summary(alone)}`);
  expect(faults(alone)).toEqual([]);

  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const attacking = attack(testSeed, ended.signal);
  await expect.poll(() => gauge('held'), { timeout: 30_000 }).toBeGreaterThan(3);
  const onPhones = await Promise.all(phones.map(async (account) => readAt(await ask(account), 250_000)));
  const highest = { running: 0, held: 0, waiting: 0 };
  const watching = (async () => {
    while (!ended.signal.aborted) {
      for (const name of ['running', 'held', 'waiting'] as const) {
        highest[name] = Math.max(highest[name], await gauge(name));
      }
      await delay(500);
    }
  })();
  const beside = await askHonestly(testSeed + 1, AbortSignal.timeout(testRounds(40_000)));
  ended.abort();
  await watching;
  console.info(
    `beside 10 hostile accounts (${JSON.stringify(await attacking)}): ${summary(beside)}; at most ${JSON.stringify(highest)}`,
  );
  expect(faults(beside)).toEqual([]);
  for (const phone of onPhones) {
    phone.hurry();
    expect(JSON.parse(await phone.text).result.rows).toHaveLength(60_000);
  }
  const left = async () => [await gauge('running'), await gauge('held'), await gauge('waiting')];
  await expect.poll(left, { timeout: 30_000 }).toEqual([0, 0, 0]);
  console.info(`at most ${Math.round(peakMemoryMb(pid))} MB`);
  expect(peakMemoryMb(pid)).toBeLessThan(400);
});
