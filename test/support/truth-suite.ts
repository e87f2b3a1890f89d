import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createToken } from '../../src/accounts/tokens.ts';
import { load } from './events.ts';
import { environmentOf, listening, useCommands } from './process.ts';
import { seededRandom } from './random.ts';
import { accounts, changesOf, eventsOf } from './random-changes.ts';
import type { TestStore } from './store.ts';

export interface TruthOptions {
  readonly seed: number;
  readonly changes: number;
  /** Services that answer, each a process of its own. */
  readonly services: number;
  /** Whether accounts can be placed on other shards. */
  readonly cluster?: boolean;
}

/** As ANSWER_TRUST_MS; what changes the store waits a little longer. */
const trustMs = 100;
const questions = accounts.flatMap((account) =>
  [
    ['/v1/campaigns', '2026-03-01', '2026-03-31'],
    ['/v1/campaigns/breakdowns/device_creative_date', '2026-02-01', '2026-04-30'],
    ['/v1/ad_units/breakdowns/site', '2026-03-01', '2026-03-02'],
    ['/v1/ad_units/breakdowns/date', '2026-01-01', '2026-12-31'],
  ].map(([path = '', start, end]) => ({
    account,
    path,
    body: JSON.stringify({ start_time: start, end_time: end }),
  })),
);

/** Random changes of a store beside callers of several services: no answer is older than the last change that was done. */
export function expectTruth(db: TestStore, { seed, changes, services, cluster = false }: TruthOptions): void {
  const commands = useCommands();
  const urls: string[] = [];
  /** Computes every answer. */
  let computing = '';
  const tokens = new Map<string, string>();

  beforeAll(async () => {
    for (const account of accounts) tokens.set(account, await createToken(db.store, { account, label: '' }));
    const env = {
      ...environmentOf(db.address),
      PORT: '0',
      RATE_LIMIT_REQUESTS: '100000000',
      LOG_LEVEL: 'warn',
    };
    const start = (more = {}) => listening(commands.start(['serve'], { ...env, LOG_LEVEL: 'info', ...more }));
    computing = await start({ ANSWER_CACHE_MEGABYTES: '0' });
    for (let n = 0; n < services; n++) urls.push(await start({ ANSWER_TRUST_MS: `${trustMs}` }));
    await load(
      db.store,
      accounts.flatMap((account) => eventsOf(account, 0)),
    );
  });
  afterAll(() => commands.killAll());

  /** The engines of a test's cluster can abort when a peer goes away, and are started again. */
  async function ask(url: string, question: number): ReturnType<typeof askOnce> {
    for (let attempts = cluster ? 40 : 1; attempts > 1; attempts--) {
      try {
        return await askOnce(url, question);
      } catch {
        await delay(500);
      }
    }
    return askOnce(url, question);
  }

  async function askOnce(url: string, question: number): Promise<{ text: string; cache: string }> {
    const { account, path, body } = questions[question] ?? { account: '', path: '', body: '' };
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.get(account)}`, 'content-type': 'application/json' },
      body,
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
    return {
      text: text.replace(/"last_update_time":"[^"]+"/, ''),
      cache: response.headers.get('cache-status') ?? '',
    };
  }

  test(`no answer is older than promised: seed ${seed}, ${changes} changes`, {
    timeout: 1_200_000,
  }, async () => {
    const random = seededRandom(seed);
    const below = (bound: number) => Math.floor(random() * bound);
    /** The answer to each question after each change that was done. */
    const truths: string[][] = [
      await Promise.all(questions.map(async (_, n) => (await ask(computing, n)).text)),
    ];
    const progress = { begun: 0, done: 0, over: false };
    const wrong: string[] = [];
    const seen = { answers: 0, hits: 0 };

    const asker = async (url: string, first: number) => {
      for (let n = first; !progress.over; n++) {
        const question = n % questions.length;
        const oldest = progress.done;
        const { text, cache } = await ask(url, question);
        const newest = progress.begun;
        seen.answers++;
        if (cache.includes('hit')) seen.hits++;
        checks.push({ question, oldest, newest, text });
        await delay(below(20));
      }
    };
    const checks: { question: number; oldest: number; newest: number; text: string }[] = [];
    const askers = urls.flatMap((url, n) => [0, 1, 2].map((k) => asker(url, n * 3 + k)));

    const told: string[] = [];
    const change = changesOf(db, cluster, below);
    try {
      for (let n = 1; n <= changes; n++) {
        progress.begun = n;
        told.push(await change(n));
        await delay(trustMs + 5);
        progress.done = n;
        truths.push(
          await Promise.all(questions.map(async (_, question) => (await ask(computing, question)).text)),
        );
        await delay(below(400));
      }
    } finally {
      progress.over = true;
      await Promise.all(askers);
    }

    for (const { question, oldest, newest, text } of checks) {
      const of = (n: number) => truths[n]?.[question];
      const recent = truths.slice(oldest, newest + 1).map((truth) => truth[question] ?? '');
      if (recent.includes(text)) continue;
      // While a change is under way, an answer may show half of it, but nothing from before the last one. Half a load can
      // look like an earlier confirmation taken back: rows that are not yet new, days that are unconfirmed again.
      const isOld = truths.slice(0, oldest).some((truth) => truth[question] === text);
      if (newest > oldest && (!isOld || isHalfway(text, recent))) continue;
      wrong.push(
        `${questions[question]?.path} of ${questions[question]?.account}, after ${told[oldest - 1]}, before ${told[oldest]} (${oldest} to ${newest}): ${text.slice(0, 300)} instead of ${of(oldest)?.slice(0, 300)}`,
      );
    }
    expect(wrong).toEqual([]);
    expect(seen.answers).toBeGreaterThan(changes * services);
    expect(seen.hits).toBeGreaterThan(seen.answers / 10);
  });
}

const dates = /"unconfirmed_revenue_dates":\[([^\]]*)\]/;
const datesOf = (answer: string): string[] => (dates.exec(answer)?.[1] ?? '').split(',').filter(Boolean);

/** Whether an answer has the rows of one of these, and no unconfirmed day that none of them has, nor lacks one of all. */
function isHalfway(answer: string, truths: readonly string[]): boolean {
  const rowsOf = (each: string) => each.replace(dates, '');
  const found = datesOf(answer);
  return (
    truths.some((truth) => rowsOf(truth) === rowsOf(answer)) &&
    found.every((day) => truths.some((truth) => datesOf(truth).includes(day))) &&
    datesOf(truths[0] ?? '').every(
      (day) => found.includes(day) || truths.some((truth) => !datesOf(truth).includes(day)),
    )
  );
}
