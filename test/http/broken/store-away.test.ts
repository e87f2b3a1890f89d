import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createToken, newToken } from '../../../src/accounts/tokens.ts';
import { readyNowOrLater } from '../../../src/http/server/ready-later.ts';
import { openGate } from '../../support/gate.ts';
import { environmentOf, listening, useCommands } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { type Page, reachedBy, useStatementsBetween } from '../../support/statements-between.ts';
import { useStore } from '../../support/store.ts';
import { isReport } from '../report-statements.ts';

const db = useStore();
const commands = useCommands();
let isHanging = false;
let answerToAll: Promise<Page> | undefined;
let answerToReports: Promise<Page> | undefined;
const between = useStatementsBetween(
  () => db.address.url,
  (passing) =>
    isHanging ? new Promise(() => {}) : (answerToAll ?? (isReport(passing) ? answerToReports : undefined)),
);
const hanging = useService(reachedBy(between, db));
const lines: { msg: string; status?: number }[] = [];
const logging = useService(
  reachedBy(between, db),
  {},
  pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) }),
);
const hurried = useService(reachedBy(between, db), { REPORT_TIMEOUT_SECONDS: '1' });

const endpoint = '/v1/campaigns';
const body = { start_time: '2025-01-01', end_time: '2025-01-31' };

/** It says that the store is away, and when to ask again; the contract has no 503. */
async function expectAway(answer: Response): Promise<void> {
  expect(await answer.json()).toMatchObject({ status: 500, code: 'store_unavailable' });
  expect(answer.status).toBe(500);
  expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
}

test('while ClickHouse restarts, also right after it was ready, a report says when to ask again', async () => {
  const gate = await openGate(db.address.url);
  const serve = commands.start(['serve'], { ...environmentOf({ ...db.address, url: gate.url }), PORT: '0' });
  const url = await listening(serve);
  const authorization = `Bearer ${await createToken(db.store, { account: 'a', label: '' })}`;
  const ask = (day: number) =>
    fetch(`${url}${endpoint}`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, end_time: `2025-01-${day}` }),
    });
  await expect.poll(async () => (await ask(10)).status, { timeout: 10_000 }).toBe(200);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  gate.close();
  await expectAway(await ask(11));
  // Nobody knows whether these tokens are valid, so they are no failed logins, of which 120 are allowed.
  const unknown = () =>
    fetch(`${url}${endpoint}`, { method: 'POST', headers: { authorization: `Bearer ${newToken()}` } });
  const answers = await Promise.all(Array.from({ length: 121 }, unknown));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([500]));
  await gate.open();
  await expect.poll(async () => (await ask(12)).status, { timeout: 10_000 }).toBe(200);
  await serve.kill('SIGTERM');
  gate.close();
});

test('a report that ClickHouse ends at its time limit says that it took too long', async () => {
  const text =
    'Code: 159. DB::Exception: Timeout exceeded: elapsed 1 seconds, maximum: 1. (TIMEOUT_EXCEEDED) (version 26)';
  // ClickHouse may say so somewhat later.
  answerToReports = delay(1_500, { status: 500, text });
  const answer = await hurried.post(endpoint, 'a', body);
  answerToReports = undefined;
  expect(await answer.json()).toMatchObject({ status: 500, code: 'report_timeout' });
});

test('a ClickHouse without memory for all statements is away, and one whose limit a report reached is not', async () => {
  const told = async (message: string) => {
    const text = `Code: 241. DB::Exception: ${message}: would use 5.00 MiB, maximum: 3.81 MiB. (MEMORY_LIMIT_EXCEEDED) (version 26)`;
    answerToReports = Promise.resolve({ status: 500, text });
    return hurried.post(endpoint, 'a', body);
  };
  await expectAway(await told('(total) memory limit exceeded'));
  await expectAway(await told('User memory limit exceeded'));
  const own = await told('Query memory limit exceeded');
  answerToReports = undefined;
  expect(await own.json()).toMatchObject({ status: 500, code: 'internal_error' });
});

test('what the store says is logged also where the caller has left', async () => {
  let answer = (_page: Page): void => undefined;
  answerToAll = new Promise((resolve) => {
    answer = resolve;
  });
  const headers = { authorization: `Bearer ${newToken()}` };
  const asking = request(`${logging.url}${endpoint}`, { method: 'POST', headers }).on('error', () => {});
  const leave = (begun: unknown) => {
    if ((begun as { request: IncomingMessage }).request.url === endpoint) asking.destroy();
  };
  subscribe('http.server.request.start', leave);
  onTestFinished(() => void unsubscribe('http.server.request.start', leave));
  asking.end('{}');
  const logged = (msg: string) => lines.filter((line) => line.msg === msg).map(({ status }) => status);
  await expect.poll(() => logged('answered'), { timeout: 20_000 }).toEqual([499]);
  expect(logged('request failed')).toEqual([]);
  answer({ status: 500, text: 'Code: 241. DB::Exception: too much. (MEMORY_LIMIT_EXCEEDED)' });
  await expect.poll(() => logged('request failed'), { timeout: 20_000 }).toHaveLength(1);
  answerToAll = undefined;
});

test('nobody waits long for a ClickHouse that hangs', async () => {
  expect((await hanging.post(endpoint, 'a', body)).status).toBe(200);
  isHanging = true;
  const startedAt = performance.now();
  await expectAway(await hanging.post(endpoint, 'a', { ...body, end_time: '2025-01-30' }));
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  // Asked when it is known.
  await expectAway(await hanging.post(endpoint, 'a', { ...body, end_time: '2025-01-29' }));
  isHanging = false;
  const again = async () => (await hanging.post(endpoint, 'a', { ...body, end_time: '2025-01-28' })).status;
  await expect.poll(again, { timeout: 20_000 }).toBe(200);
}, 60_000);

test('a service that began without ClickHouse is ready once its store is migrated, too', async () => {
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const failures: Error[] = [away, away, new Error('not migrated'), new Error('not migrated')];
  let isReady = false;
  const prepare = async () => {
    const failure = failures.shift();
    if (failure) throw failure;
    isReady = true;
  };
  await readyNowOrLater(prepare, pino({ level: 'silent' }), new AbortController().signal, 1);
  expect(isReady).toBe(false);
  await expect.poll(() => isReady, { timeout: 10_000 }).toBe(true);
  await expect(
    readyNowOrLater(
      () => Promise.reject(new Error('not migrated')),
      pino({ level: 'silent' }),
      new AbortController().signal,
    ),
  ).rejects.toThrow('not migrated');
});
