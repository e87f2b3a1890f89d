import { once } from 'node:events';
import { expect, test } from 'vitest';
import { isAlive, listening, openReport } from '../../support/process.ts';
import { killedInAnAnswer, readAll, useEmbeddedStore } from '../embedded-store.ts';

const db = useEmbeddedStore();
const { commands, env, engine, enginePid, reportsRunning } = db;

killedInAnAnswer(db, ['zstd']);

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
