import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { insertLarge } from '../support/accounts.ts';
import { isAlive, listening, openReport, startProcess, useCommands } from '../support/process.ts';

const commands = useCommands();
const folder = mkdtempSync(join(tmpdir(), 'adtally-broken-'));
const dataDir = join(folder, 'data');
const env = { DATA_DIR: dataDir, PORT: '0', RATE_LIMIT_REQUESTS: '100000' };

const rows = 400_000;
let token: string;

beforeAll(async () => {
  const lease = await acquireEmbedded(dataDir);
  const address = { url: lease.url, user: 'default', password: '', database: 'adtally' };
  await migrate(address);
  const store = connect(address);
  await insertLarge(store, ['large'], rows);
  token = await createToken(store, { account: 'large', label: '' });
  await store.close();
  await lease.release();
});

afterEach(async () => {
  await commands.killAll();
  await vi.waitUntil(() => !engine(), { timeout: 40_000 });
});
afterAll(() => rmSync(folder, { recursive: true, maxRetries: 20 }));

/** The engine that serves DATA_DIR. */
function engine(): { url: string; pid: number } | undefined {
  const file = join(dataDir, 'clickhouse.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

function enginePid(): number {
  const pid = engine()?.pid;
  if (!pid) throw new Error('no engine runs');
  return pid;
}

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = connect({ url: engine()?.url ?? '', user: 'default', password: '', database: 'adtally' });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Reports that the database works on. */
function reportsRunning(): Promise<number> {
  return withStore(async (store) => {
    const running = await select(
      store,
      "SELECT 1 FROM system.processes WHERE query LIKE '%FORMAT Template%' AND query NOT LIKE '%system.processes%'",
    );
    return running.length;
  });
}

/** Reads to the end; the bytes, and whether the transfer ended as a complete one does. */
async function readAll(answer: IncomingMessage): Promise<{ bytes: number; complete: boolean; tail: string }> {
  let bytes = 0;
  let tail = '';
  const failed = await (async () => {
    for await (const data of answer as AsyncIterable<Buffer>) {
      bytes += data.length;
      tail = (tail + data.toString('latin1')).slice(-20);
    }
  })().then(
    () => false,
    () => true,
  );
  expect(answer.complete).toBe(!failed);
  return { bytes, complete: !failed, tail };
}

/** Waits until reports come out whole again. */
async function expectWholeReports(url: string): Promise<void> {
  const status = () =>
    openReport(url, { token, end: '2026-01-01' }).then(async (answer) => {
      const { complete } = await readAll(answer);
      return complete && answer.statusCode;
    });
  await expect.poll(status, { timeout: 30_000, interval: 100 }).toBe(200);
}

test.each(['identity', 'gzip', 'zstd'])(
  'ClickHouse killed in the middle of an answer never makes it look complete, and the next one works: %s',
  async (accept) => {
    const serve = commands.start(['serve'], env);
    const url = await listening(serve);
    const answer = await openReport(url, { token, accept });
    expect(answer.statusCode).toBe(200);
    await once(answer, 'readable');
    const killed = enginePid();
    process.kill(killed, 'SIGKILL');
    const { bytes, complete } = await readAll(answer);
    expect({ complete, some: bytes > 0 }).toEqual({ complete: false, some: true });
    await expectWholeReports(url);
    expect(enginePid()).not.toBe(killed);
    expect((await serve.kill('SIGTERM')).code).toBe(0);
  },
);

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
  expect(stderr).toMatch(/ClickHouse is gone/);
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
        `authorization: Bearer ${token}`,
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

test('a caller that goes away takes its statement with it', async () => {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  const callers = await Promise.all(
    ['identity', 'gzip', 'zstd'].map(async (accept) => {
      const answer = await openReport(url, { token, accept });
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
    const answer = await openReport(url, { token, accept });
    expect(answer.statusCode).toBe(200);
    await once(answer, 'readable');
    const kill = "KILL QUERY WHERE query LIKE '%FORMAT Template%' AND query NOT LIKE '%KILL QUERY%'";
    await withStore((store) => store.command({ query: kill }));
    const { bytes, complete } = await readAll(answer);
    expect({ accept, complete, some: bytes > 0 }).toEqual({ accept, complete: false, some: true });
  }
  await expectWholeReports(url);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});

test('a caller that stops reading is cut off after the time limit of a report', async () => {
  const serve = commands.start(['serve'], { ...env, REPORT_TIMEOUT_SECONDS: '3' });
  const url = await listening(serve);
  const answer = await openReport(url, { token });
  await once(answer, 'readable');
  await expect.poll(reportsRunning, { timeout: 20_000, interval: 100 }).toBe(0);
  expect((await readAll(answer)).complete).toBe(false);
  await expectWholeReports(url);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});

test('a stop lets running answers finish, takes no new ones, and leaves nothing behind', async () => {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  const answer = await openReport(url, { token });
  await once(answer, 'readable');
  const pid = enginePid();

  const ended = serve.kill('SIGTERM');
  await serve.said(/stopping/);
  await expect
    .poll(() =>
      openReport(url, { token }).then(
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
