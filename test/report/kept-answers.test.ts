import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { Damage } from '../../src/report/damage.ts';
import { Answers, type Asking, type Found } from '../../src/report/kept/answers.ts';
import { StoreVersion } from '../../src/report/kept/store-version.ts';
import { planReport } from '../../src/report/plan.ts';
import { event, load } from '../support/events.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const { signal } = new AbortController();
let reader: Reader;

beforeAll(() => {
  reader = new Reader(db.address, 10_000);
});
afterAll(() => reader.close());

function answersOf(trustMs: number): Answers {
  const { database } = db.address;
  const damage = new Damage({ reader, database, onFound: () => {} });
  const version = new StoreVersion({ reader, catalog, database, damage, trustMs, onError: () => {} });
  return new Answers({ reader, version, damage, timeoutSeconds: 60, maxBytes: 2 ** 20 });
}

/** The campaigns of an advertiser until a day. */
function planUntil(end: string) {
  const endpoint = endpoints(catalog).find(({ path }) => path === '/v1/campaigns');
  if (!endpoint) throw new Error('there is no /v1/campaigns');
  return planReport(catalog, endpoint.breakdown, 'advertiser', { start: '2026-03-01', end });
}

function asking(found: Found): Asking {
  if ('ask' in found) return found.ask;
  throw new Error(`the answer is there: ${found.status}`);
}

test('the unconfirmed days are those of when they are read, however long the report waited for its place', async () => {
  await load(db.store, [event({ spend: '1' })]);
  const answers = answersOf(0);
  const daysOf = async (found: Found) => asking(found).unconfirmedDates(signal);
  expect(await daysOf(await answers.find(planUntil('2026-03-30'), 'json'))).toEqual(['2026-03-01']);
  const waiting = await answers.find(planUntil('2026-03-31'), 'json');
  await confirmDays(db.store, 'advertiser', '2026-03-01', '2026-03-01');
  expect(await daysOf(waiting)).toEqual([]);
});

/** Ends as a report that was read at once. */
const end = (ask: Asking) =>
  ask.collect(
    'statement',
    Promise.resolve({ body: Readable.from([]), summary: {}, coding: 'identity' }),
    signal,
  );

test('when the answer that several wait for does not come, one of them computes it for all', async () => {
  const answers = answersOf(60_000);
  const plan = planUntil('2026-03-29');
  const first = asking(await answers.find(plan, 'json'));
  const waiting = Array.from({ length: 5 }, () => answers.find(plan, 'json'));
  await setImmediate();
  first.end();
  const next = asking(await Promise.race(waiting));
  await setImmediate();
  await end(next);
  const found = await Promise.all(waiting);
  expect(found.map((each) => ('ask' in each ? each.ask : each.status))).toEqual([
    next,
    ...Array(4).fill(expect.stringContaining('collapsed')),
  ]);
});

test('a quick report of few days does not make one of many days small again', async () => {
  const answers = answersOf(60_000);
  const ask = async (day: string) => asking(await answers.find(planUntil(day), 'json'));
  const long = await ask('2026-12-31');
  long.tookLong();
  long.end();
  const short = await ask('2026-03-01');
  expect(short.size).toBe('small');
  await end(short);
  expect((await ask('2026-12-31')).size).toBe('large');
});
