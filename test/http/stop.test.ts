import { once } from 'node:events';
import { connect as dial, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, inject, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { insertLarge } from '../support/accounts.ts';
import { type Command, listening, openReport, useCommands } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();
let token: string;

beforeAll(async () => {
  await insertLarge(db.store, ['large']);
  token = await createToken(db.store, { account: 'large', label: '' });
});

async function startService(): Promise<{ serve: Command; url: string; open: () => Socket }> {
  const { url: clickhouse, user, password } = inject('clickhouse');
  const serve = commands.start(['serve'], {
    CLICKHOUSE_URL: clickhouse,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: db.address.database,
    PORT: '0',
    SEND_TIMEOUT_SECONDS: '60',
  });
  const url = await listening(serve);
  return { serve, url, open: () => dial({ host: '127.0.0.1', port: Number(new URL(url).port) }) };
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

test('a stop lets an answer that is read finish, takes nothing new, and cuts one that is not read at its limit', async () => {
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
  const running = await select(
    db.store,
    `SELECT 1 FROM system.processes WHERE current_database = currentDatabase() AND query LIKE '%FORMAT Template%'
       AND query NOT LIKE '%system.processes%'`,
  );
  expect(running).toEqual([]);
}, 60_000);
