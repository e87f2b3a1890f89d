import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { insertLarge } from '../../support/accounts.ts';
import { openReport } from '../../support/process.ts';
import { useServicesToStop } from '../../support/stopped-service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const startService = useServicesToStop(db);
let token: string;

beforeAll(async () => {
  await insertLarge(db.store, ['large']);
  token = await createToken(db.store, { account: 'large', label: '' });
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
});
