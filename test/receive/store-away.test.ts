import { expect, onTestFinished, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
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
  await receive.kill('SIGTERM');
  gate.close();
}, 180_000);

test('a service that was too busy to ask ClickHouse whether it is there asks before it sends a body away', async () => {
  const authorization = `Bearer ${await receiver.token('web')}`;
  // The service runs in this process.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
  const { status } = await sendTo(`${receiver.url}/v1/events`, bodyOf([event()]), { authorization });
  expect(status).toBe(200);
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
