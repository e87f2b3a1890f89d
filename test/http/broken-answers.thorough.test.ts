import { once } from 'node:events';
import { expect, test } from 'vitest';
import { killedInAnAnswer, readAll, useEmbeddedStore } from '../support/embedded-store.ts';
import { isAlive, listening, openReport } from '../support/process.ts';

const db = useEmbeddedStore();
const { commands, env, engine, enginePid, reportsRunning, expectWholeReports } = db;

killedInAnAnswer(db, ['identity', 'gzip']);

test('a service whose ClickHouse cannot be kept running ends, so that it is restarted', async () => {
  const serve = commands.start(['serve'], env);
  await listening(serve);
  let killed = 0;
  // The supervisor gives up after ten engines that did not last.
  for (let round = 0; round < 10; round++) {
    await expect.poll(() => engine()?.pid, { timeout: 10_000, interval: 20 }).not.toBe(killed);
    killed = enginePid();
    process.kill(killed, 'SIGKILL');
  }
  await expect.poll(() => isAlive(serve.pid), { timeout: 10_000 }).toBe(false);
  const { code, stderr } = await serve.ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/the embedded ClickHouse has ended/);
});

test('a caller that stops reading is cut off after the time limit of a report', async () => {
  const serve = commands.start(['serve'], { ...env, REPORT_TIMEOUT_SECONDS: '3' });
  const url = await listening(serve);
  const answer = await openReport(url, { token: db.token });
  await once(answer, 'readable');
  await expect.poll(reportsRunning, { timeout: 20_000, interval: 100 }).toBe(0);
  expect((await readAll(answer)).complete).toBe(false);
  await expectWholeReports(url);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});
