import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, inject, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { insertLarge } from '../../support/accounts.ts';
import { attacks } from '../../support/hostile-callers.ts';
import { environmentOf, listening, openReport, peakMemoryMb, useCommands } from '../../support/process.ts';
import { seededRandom, testSeed } from '../../support/random.ts';
import { readAt } from '../../support/slow-callers.ts';
import { useStore } from '../../support/store.ts';

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

async function gauge(name: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^adtally_reports_${name} (\\d+)$`, 'm').exec(metrics)?.[1]);
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
    await rest(random() * 15_000);
    while (!ended.aborted) {
      const isLarge = large.includes(account);
      const startedAt = performance.now();
      const answer = await ask(account, isLarge ? undefined : '/v1/campaigns');
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
  const alone = await askHonestly(testSeed, AbortSignal.timeout(30_000));
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
  const beside = await askHonestly(testSeed + 1, AbortSignal.timeout(60_000));
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
