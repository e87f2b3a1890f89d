import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, inject, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { linger } from '../../../src/http/server/connections.ts';
import { insertLarge } from '../../support/accounts.ts';
import { thorough } from '../../support/mode.ts';
import { environmentOf, listening, openReport, useCommands } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';
import { reportsRunning } from '../report-statements.ts';

const db = useStore();
const commands = useCommands();

/** A service as a process of its own, which sends to a caller that does not read for a minute. */
async function startService(env: Record<string, string> = {}) {
  const serve = commands.start(['serve'], {
    ...environmentOf(db.address),
    PORT: '0',
    SEND_TIMEOUT_SECONDS: '60',
    ...env,
  });
  const url = await listening(serve);
  return { serve, url, open: () => connect({ host: '127.0.0.1', port: Number(new URL(url).port) }) };
}

test('a stop waits for nobody who asked nothing', async () => {
  const { serve, open } = await startService();
  const [silent, begun, resting] = [open(), open(), open()];
  for (const socket of [silent, begun, resting]) socket.on('error', () => undefined);
  await Promise.all([silent, begun, resting].map((socket) => once(socket, 'connect')));
  resting.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  begun.write('GET /healthz HTTP/1.1\r\nHost: loc');
  await once(resting, 'data');
  const startedAt = performance.now();
  const { code } = await serve.kill('SIGTERM');
  expect(code).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

test('a stop does not wait for a ClickHouse that hangs, and what it breaks off is logged as no fault', async () => {
  const { hostname, port } = new URL(inject('clickhouse').url);
  let asked: (() => void) | undefined;
  const between = createServer((socket) => {
    const upstream = connect(Number(port), hostname);
    for (const each of [socket, upstream]) each.on('error', () => undefined);
    socket.on('data', (piece) => (asked ? asked() : upstream.write(piece)));
    upstream.pipe(socket);
    socket.on('close', () => upstream.destroy());
  });
  await once(between.listen(0, '127.0.0.1'), 'listening');
  try {
    const address = between.address();
    const { serve } = await startService({
      CLICKHOUSE_URL: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    });
    // From here on ClickHouse answers nothing; what the service asks by the clock is under way when it stops.
    await new Promise<void>((resolve) => {
      asked = resolve;
    });
    const { code, stderr } = await serve.kill('SIGTERM');
    expect(code).toBe(0);
    expect(stderr.split('\n').filter((line) => /"level":[56]0/.test(line))).toEqual([]);
  } finally {
    between.close();
  }
});

test.runIf(thorough)(
  'a stop lets an answer that is read finish, takes nothing new, and cuts one that is not read at its limit; without a stop a caller may pause as long',
  async () => {
    await insertLarge(db.store, ['large']);
    const token = await createToken(db.store, { account: 'large', label: '' });
    const other = await startService();
    const paused = await openReport(other.url, { token });
    await once(paused, 'readable');
    const pausedAt = performance.now();
    const { serve, url, open } = await startService();
    const silent = open().on('error', () => undefined);
    await once(silent, 'connect');
    const unread = await openReport(url, { token });
    unread.on('error', () => undefined);
    const read = await openReport(url, { token });
    await Promise.all([unread, read].map((answer) => once(answer, 'readable')));
    const startedAt = performance.now();
    const closed = once(silent, 'close');
    const ended = serve.kill('SIGTERM');
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    expect(JSON.parse(await text(read)).result.rows).toHaveLength(200_000);
    expect(read.complete).toBe(true);
    const { code } = await ended;
    const seconds = (performance.now() - startedAt) / 1000;
    expect(code).toBe(0);
    expect(seconds).toBeGreaterThan(28);
    expect(seconds).toBeLessThan(40);
    unread.resume();
    await expect.poll(() => unread.closed).toBe(true);
    expect(unread.complete).toBe(false);
    expect(await reportsRunning(db.store)).toHaveLength(1);
    // By itself ClickHouse gives up after 30 s in which it could send nothing.
    await expect.poll(() => performance.now() - pausedAt, { timeout: 20_000 }).toBeGreaterThan(33_000);
    expect(JSON.parse(await text(paused)).result.rows).toHaveLength(200_000);
    expect((await other.serve.kill('SIGTERM')).code).toBe(0);
    expect(await reportsRunning(db.store)).toEqual([]);
  },
);

test('a caller that left before the service waits for the rest of its request leaves no timer, which would keep a stop waiting', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const caller = connect(address.port, '127.0.0.1');
  const [socket] = await once(server, 'connection');
  caller.destroy();
  await once(socket.resume(), 'close');
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  linger(socket, 30_000);
  expect(timers()).toBe(before);
  server.close();
});
