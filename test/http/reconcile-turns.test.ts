import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { event, load } from '../support/events.ts';
import { signal } from '../support/held.ts';
import { useService } from '../support/service.ts';
import { reachedBy, useStatementsBetween } from '../support/statements-between.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** A setting of the statements of a comparison alone. */
const mark = 'max_result_bytes';
/** Statements of comparisons, with their settings. */
const statements: string[] = [];
/** Until then none of them comes to ClickHouse. */
const [release, released] = signal();
const way = useStatementsBetween(
  () => db.address.url,
  async ({ query, settings }) => {
    if (!settings.has(mark)) return;
    statements.push(`${query} ${settings}`);
    await released;
  },
);
const service = useService(
  reachedBy(way, db),
  // What bounds reports is no bound here.
  { MAX_CONCURRENT_REPORTS: '40', REPORT_TIMEOUT_SECONDS: '600' },
);

/** How many statements of comparisons came for an account, which they name in hex. */
const askedFor = (account: string) => {
  const id = Buffer.from(account).toString('hex');
  return statements.filter((statement) => statement.includes(id)).length;
};

async function send(account: string, signal = new AbortController().signal): Promise<Response> {
  return fetch(`${service.url}/v1/campaigns/reconcile`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await service.token(account)}`, 'content-type': 'text/csv' },
    body: 'day,campaign_id,impressions\n2026-03-01,campaign,1\n',
    signal,
  });
}

/** As a caller does who comes back when told to. */
async function sendUntilTaken(account: string): Promise<number> {
  let { status } = await send(account);
  while (status === 429) {
    await setTimeout(100);
    ({ status } = await send(account));
  }
  return status;
}

test('two comparisons run at a time, one of an account: others wait, and one comes when another ends or its caller leaves', async () => {
  const [first, second, third] = ['turn-a', 'turn-b', 'turn-c'];
  await load(db.store, [event({ advertiser_id: first }), event({ advertiser_id: third })]);
  const running = (account: string) => expect.poll(() => askedFor(account), { timeout: 60_000 }).toBe(1);
  const one = send(first);
  await running(first);
  const leaving = new AbortController();
  const left = send(second, leaving.signal).catch((error: Error) => error.name);
  await running(second);

  const refused = await send(third);
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(await refused.json()).toMatchObject({ code: 'too_many_reports' });

  const ofSame = sendUntilTaken(first);
  leaving.abort();
  expect(await left).toBe('AbortError');
  const next = sendUntilTaken(third);
  await running(third);
  expect([askedFor(first), askedFor(second)]).toEqual([1, 1]);

  release();
  expect((await one).status).toBe(200);
  expect([await next, await ofSame]).toEqual([200, 200]);
});
