import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** A setting of the statements of a comparison alone. */
const mark = 'max_result_bytes';
/** What was sent to ClickHouse. */
let sent = '';
let letThrough = () => {};
/** Until then no statement of a comparison comes to ClickHouse. */
const released = new Promise<void>((resolve) => {
  letThrough = resolve;
});
const way = createServer((from) => {
  const target = new URL(db.address.url);
  const onward = connect(Number(target.port || 80), target.hostname);
  let before = Promise.resolve();
  from.on('data', (bytes) => {
    const text = bytes.toString('latin1');
    sent += text;
    const held = text.includes(mark) ? released : undefined;
    before = before.then(() => held).then(() => void onward.write(bytes));
  });
  onward.pipe(from);
  from.on('error', () => onward.destroy()).on('close', () => onward.destroy());
  onward.on('error', () => from.destroy());
});
beforeAll(async () => {
  await once(way.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => void way.close());

const service = useService(
  {
    get store() {
      return db.store;
    },
    get shards() {
      return db.shards;
    },
    get address() {
      return { ...db.address, url: `http://127.0.0.1:${(way.address() as AddressInfo).port}` };
    },
  },
  // What bounds reports is no bound here.
  { MAX_CONCURRENT_REPORTS: '40', REPORT_TIMEOUT_SECONDS: '600' },
);

/** How many statements of comparisons came for an account, which they name in hex. */
function askedFor(account: string): number {
  const id = Buffer.from(account).toString('hex');
  const asked = sent.split('\r\n').filter((line) => line.startsWith('POST ') && line.includes(mark));
  return asked.filter((line) => line.includes(id)).length;
}

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
  while (status === 429) ({ status } = await send(account));
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

  letThrough();
  expect((await one).status).toBe(200);
  expect([await next, await ofSame]).toEqual([200, 200]);
});
