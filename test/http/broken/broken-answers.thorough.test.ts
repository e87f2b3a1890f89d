import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive, listening, openReport, startProcess } from '../../support/process.ts';
import { killedInAnAnswer, readAll, useEmbeddedStore } from '../embedded-store.ts';

const db = useEmbeddedStore();
const { commands, folder, env, engine, enginePid, reportsRunning, expectWholeReports } = db;

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
  expect(engine()).toBeUndefined();
  expect(readFileSync(join(env.DATA_DIR ?? '', 'clickhouse.log'), 'utf8')).toContain('gave up');
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

test('curl, too, is told that the answer broke off', async () => {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  for (const compressed of [[], ['--compressed']]) {
    const file = join(folder, `answer-${compressed.length}.json`);
    const curl = startProcess('curl', [
      ...['-sS', '--limit-rate', '4M', '-o', file, ...compressed, '-H', 'content-type: application/json'],
      ...[
        '-H',
        `authorization: Bearer ${db.token}`,
        '-d',
        '{"start_time":"2026-01-01","end_time":"2026-12-31"}',
      ],
      `${url}/v1/campaigns/breakdowns/device_creative_date`,
    ]);
    await expect
      .poll(() => existsSync(file) && statSync(file).size > 100_000, { timeout: 20_000 })
      .toBe(true);
    process.kill(enginePid(), 'SIGKILL');
    const { code, stderr } = await curl.ended;
    expect([18, 56], stderr).toContain(code);
    await expectWholeReports(url);
  }
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});

test('two services on one DATA_DIR share one engine, which lasts until the second has stopped', async () => {
  const services = [commands.start(['serve'], env), commands.start(['serve'], env)];
  const [first = '', second = ''] = await Promise.all(services.map(listening));
  const pid = enginePid();
  await expectWholeReports(first);
  await expectWholeReports(second);
  expect((await services[0]?.kill('SIGINT'))?.code).toBe(0);
  await expectWholeReports(second);
  expect(enginePid()).toBe(pid);
  expect((await services[1]?.kill('SIGTERM'))?.code).toBe(0);
  expect(isAlive(pid)).toBe(false);
  expect(engine()).toBeUndefined();
});
