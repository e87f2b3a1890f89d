import { once } from 'node:events';
import { expect, test } from 'vitest';
import { isAlive, listening, openReport } from '../../support/process.ts';
import { killedInAnAnswer, readAll, useEmbeddedStore } from '../embedded-store.ts';
import { killReports } from '../report-statements.ts';

const db = useEmbeddedStore();
const { commands, env, engine, enginePid, withStore, reportsRunning, expectWholeReports } = db;

killedInAnAnswer(db, ['zstd']);

test('a caller that goes away takes its statement with it', async () => {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  const callers = await Promise.all(
    ['identity', 'gzip', 'zstd'].map(async (accept) => {
      const answer = await openReport(url, { token: db.token, accept });
      await once(answer, 'readable');
      return answer;
    }),
  );
  expect(await reportsRunning()).toBe(callers.length);
  for (const answer of callers) answer.destroy();
  await expect.poll(reportsRunning, { timeout: 2_000, interval: 50 }).toBe(0);
  await expectWholeReports(url);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});

test('a statement that fails after the first byte breaks the transfer', async () => {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  for (const accept of ['identity', 'gzip', 'zstd', 'br']) {
    const answer = await openReport(url, { token: db.token, accept });
    expect(answer.statusCode).toBe(200);
    await once(answer, 'readable');
    await withStore(killReports);
    const { bytes, complete } = await readAll(answer);
    expect({ accept, complete, some: bytes > 0 }).toEqual({ accept, complete: false, some: true });
  }
  await expectWholeReports(url);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});

test('a stop lets running answers finish, takes no new ones, and leaves nothing behind', async () => {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  const answer = await openReport(url, { token: db.token });
  await once(answer, 'readable');
  const pid = enginePid();

  const ended = serve.kill('SIGTERM');
  await serve.said(/stopping/);
  await expect
    .poll(() =>
      openReport(url, { token: db.token }).then(
        () => 'taken',
        () => 'refused',
      ),
    )
    .toBe('refused');
  expect(await reportsRunning()).toBe(1);

  const { complete, tail } = await readAll(answer);
  expect(complete).toBe(true);
  expect(tail).toContain('"unconfirmed_revenue_dates":[]}}'.slice(-20));
  expect((await ended).code).toBe(0);
  expect(isAlive(pid)).toBe(false);
  expect(engine()).toBeUndefined();
});
