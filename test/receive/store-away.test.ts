import { request } from 'node:http';
import pino from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { Load } from '../../ingest/ledger/load.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { Readiness } from '../../src/http/server/health.ts';
import { event } from '../support/events.ts';
import { openGate } from '../support/gate.ts';
import { environmentOf, listening, useCommands } from '../support/process.ts';
import { type Answer, bodyOf, sendTo, useReceiver } from '../support/receiver.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const receiver = useReceiver(db);
const commands = useCommands();
const lines: { msg: string; status?: number }[] = [];
const logged = (msg: string) => lines.filter((line) => line.msg === msg);
const logging = useReceiver(
  db,
  {},
  pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) }),
);

test('while ClickHouse is away a body is told to come again, and then counts once', async () => {
  const gate = await openGate(db.address.url);
  const receive = commands.start(['receive'], {
    ...environmentOf({ ...db.address, url: gate.url }),
    RECEIVE_PORT: '0',
  });
  const url = await listening(receive);
  const authorization = `Bearer ${await createToken(db.store, { account: 'web', label: '', purpose: 'ingest' })}`;
  const send = (body: string): Promise<Answer> => sendTo(`${url}/v1/events`, body, { authorization });
  const bodies = [bodyOf([event()]), bodyOf([event()]), bodyOf([event()])] as const;
  await expect.poll(async () => (await send(bodies[0])).status, { timeout: 20_000 }).toBe(200);
  gate.close();
  // Before that is known it is tried again, for as long as ClickHouse may need to restart.
  const underWay = send(bodies[1]);
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 20_000 }).toBe(503);
  const away = await send(bodies[2]);
  expect(away).toMatchObject({ status: 503, json: { code: 'store_busy' } });
  expect(away.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  await gate.open();
  expect([200, 503]).toContain((await underWay).status);
  for (const body of bodies) {
    await expect.poll(async () => (await send(body)).status, { timeout: 60_000 }).toBe(200);
  }
  const [row] = await select<{ n: number }>(db.store, 'SELECT toUInt32(count()) AS n FROM events');
  expect(row?.n).toBe(3);
  const { stderr } = await receive.kill('SIGTERM');
  gate.close();
  // Probes come every few seconds, and the line of each answer says what it was.
  expect(stderr).toMatch(/"endpoint":"\/readyz","status":503/);
  expect(stderr).not.toContain('the store cannot be reached');
}, 180_000);

test('a service that was too busy to ask ClickHouse whether it is there asks before it sends a body or a probe away', async () => {
  const authorization = `Bearer ${await receiver.token('web')}`;
  // The service runs in this process.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
  const asked = [
    fetch(`${receiver.url}/readyz`),
    sendTo(`${receiver.url}/v1/events`, bodyOf([event()]), { authorization }),
  ];
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
});

test('a check that is late is waited for, and one that hangs is not', async () => {
  let answers = true;
  const { query } = db.store;
  const store = Object.assign(Object.create(db.store), {
    query: (...asked: Parameters<typeof query>) =>
      answers ? db.store.query(...asked) : new Promise<never>(() => {}),
  });
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const readiness = new Readiness(store, () => undefined);
  await readiness.start();
  readiness.stop();
  vi.advanceTimersByTime(10_000);
  expect(readiness.finding).toBe('unreachable');
  expect(await readiness.latest()).toBe('ready');
  answers = false;
  vi.advanceTimersByTime(10_000);
  expect(await readiness.latest()).toBe('unreachable');
});

test('a body that ClickHouse refuses to store is asked for again after a minute: each time all other loads wait for its mend', async () => {
  const authorization = `Bearer ${await receiver.token('web')}`;
  const body = bodyOf([event({ advertiser_id: 'refused' })]);
  const send = () => sendTo(`${receiver.url}/v1/events`, body, { authorization });
  const alter = (how: string) => db.store.command({ query: `ALTER TABLE events ${how}` });
  await alter("ADD CONSTRAINT refused CHECK advertiser_id != 'refused'");
  try {
    const { status, headers, json } = await send();
    expect([status, headers.get('retry-after'), json.detail]).toEqual([
      ...[503, '60', 'the store cannot do this now; send the same again in 60 s'],
    ]);
  } finally {
    await alter('DROP CONSTRAINT refused');
  }
  expect(await send()).toMatchObject({ status: 200, json: { accepted: 1 } });
});

test('what the store says to a body whose sender has left is logged, and not that a sender has left', async () => {
  const authorization = `Bearer ${await logging.token('web')}`;
  const left = () => logged('answered').filter(({ status }) => status === 499).length;
  const breaksOff = request(`${logging.url}/v1/events`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-ndjson', 'content-length': 1_000 },
  }).on('error', () => {});
  breaksOff.write('{', () => breaksOff.destroy());
  await expect.poll(left, { timeout: 20_000 }).toBe(1);
  const turn = await Load.begin(db.store, { kind: 'rebuild', file: 'in turn' }, new Date());
  const leaving = new AbortController();
  const { signal } = leaving;
  const sent = fetch(`${logging.url}/v1/events`, {
    ...{ method: 'POST', headers: { authorization, 'content-type': 'application/x-ndjson' }, signal },
    body: bodyOf([event()]),
  }).catch(() => undefined);
  const waiting = "SELECT 1 AS waits FROM loads FINAL WHERE file = 'push from web' AND state = 'running'";
  await expect.poll(() => select(db.store, waiting), { timeout: 20_000 }).toEqual([{ waits: 1 }]);
  leaving.abort();
  await sent;
  await expect.poll(left, { timeout: 20_000 }).toBe(2);
  expect(logged('request failed')).toEqual([]);
  await db.store.command({ query: 'RENAME TABLE incoming TO incoming_away' });
  await turn.finish();
  await expect.poll(() => logged('request failed'), { timeout: 20_000 }).toHaveLength(1);
  await db.store.command({ query: 'RENAME TABLE incoming_away TO incoming' });
});
