import { once } from 'node:events';
import { hostname } from 'node:os';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Reader } from '../../../clickhouse/reader.ts';
import { openLog, throttledErrorLog } from '../../../src/observe/log.ts';
import { ReportOutcomes } from '../../../src/observe/report-outcomes.ts';
import { insertLarge } from '../../support/accounts.ts';
import { openReport } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const lines: string[] = [];
const log = openLog('info', { write: (line) => void lines.push(line) });
const db = useStore();
const service = useService(db, {}, log);
const path = '/v1/campaigns/breakdowns/device_creative_date';
const body = { start_time: '2026-01-01', end_time: '2026-12-31' };

// More than the buffers of a connection take.
beforeAll(() => insertLarge(db.store, ['large'], 21_000));
afterEach(() => {
  lines.length = 0;
});

/** The line of a request, when it is written. */
async function lineOf(request: string): Promise<Record<string, unknown>> {
  const find = () =>
    lines.map((line) => JSON.parse(line)).find((line) => line.msg === 'answered' && line.request === request);
  return vi.waitUntil(find, { timeout: 20_000 });
}

test.each([
  ['identity', 'application/json', 'json'],
  ['zstd', 'application/vnd.apache.parquet', 'parquet'],
  ['gzip', 'text/csv', 'csv'],
])(
  'a report in %s of %s is logged with its rows, once, and without the token',
  async (coding, type, format) => {
    const before = Date.now();
    const answer = await service.post(path, 'large', body, {
      'x-request-id': `large-${format}`,
      accept: type,
      'accept-encoding': coding,
    });
    await answer.arrayBuffer();
    const ended = Date.now();
    const line = await lineOf(`large-${format}`);
    expect(line).toEqual({
      level: 30,
      pid: process.pid,
      hostname: hostname(),
      msg: 'answered',
      time: expect.any(Number),
      request: `large-${format}`,
      address: '127.0.0.1',
      account: 'large',
      token: expect.stringMatching(/^\w{10}$/),
      endpoint: path,
      status: 200,
      rows: 21_000,
      bytes: expect.any(Number),
      complete: true,
      format,
      coding,
      cache: 'fwd=uri-miss',
      query: expect.stringMatching(/^[0-9a-f-]{36}$/),
      first_byte_ms: expect.any(Number),
      duration_ms: expect.any(Number),
    });
    expect(line.bytes).toBeGreaterThan(100_000);
    // Of the end of the answer, not of when its rows were known.
    const startedAt = Number(line.time) - Number(line.duration_ms);
    expect(startedAt).toBeGreaterThan(before - 10);
    expect(startedAt).toBeLessThan(ended);
    expect(lines.join('')).not.toContain(await service.token('large'));
    expect(lines.filter((text) => text.includes(`large-${format}`))).toHaveLength(1);
  },
);

test('a report without rows has 0 of them', async () => {
  await (await service.post(path, 'nobody', body, { 'x-request-id': 'none' })).arrayBuffer();
  expect(await lineOf('none')).toMatchObject({ account: 'nobody', status: 200, rows: 0 });
});

test('what is no whole report is logged at once, without rows', async () => {
  await service.post(path, 'large', {}, { 'x-request-id': 'wrong' });
  await fetch(`${service.url}${path}`, { method: 'POST', headers: { 'x-request-id': 'stranger' } });
  expect(await lineOf('wrong')).toMatchObject({ account: 'large', endpoint: path, status: 400 });
  expect(await lineOf('stranger')).toMatchObject({ endpoint: path, status: 401 });
  const left = await openReport(service.url, { token: await service.token('large') });
  await once(left, 'readable');
  left.destroy();
  const request = String(left.headers['x-request-id']);
  expect(await lineOf(request)).toMatchObject({ status: 200, complete: false, query: expect.any(String) });
  for (const id of ['wrong', 'stranger', request]) expect(await lineOf(id)).not.toHaveProperty('rows');
});

test('metrics count requests, their seconds and their bytes by endpoint, and what is no endpoint as one', async () => {
  const metric = async (name: string, labels: string) => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const line = text.split('\n').find((line) => line.startsWith(`${name}{${labels}}`));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  const endpoint = '/v1/ad_units/breakdowns/site';
  const names = [
    ['adtally_http_requests_total', `endpoint="${endpoint}",status="200"`],
    ['adtally_http_requests_total', `endpoint="${endpoint}",status="400"`],
    ['adtally_http_request_duration_seconds_count', `endpoint="${endpoint}",status="200"`],
    ['adtally_http_requests_total', 'endpoint="other",status="404"'],
  ] as const;
  const read = () => Promise.all(names.map(([name, labels]) => metric(name, labels)));
  const before = await read();
  for (const content of [body, body, {}]) await (await service.post(endpoint, 'large', content)).text();
  for (const unknown of ['/a', '/b', '/c']) await (await fetch(`${service.url}${unknown}`)).text();
  const added = async () => (await read()).map((count, n) => count - (before[n] ?? 0));
  await expect.poll(added).toEqual([2, 1, 2, 3]);
  expect(await metric('adtally_http_response_bytes_total', `endpoint="${endpoint}"`)).toBeGreaterThan(1000);
});

describe('rows are not waited for', () => {
  const failures: unknown[] = [];
  const ask = async (url: string, giveUpAfterMs: number) => {
    const reader = new Reader({ ...db.address, url }, 10_000);
    const onError = (error: unknown) => void failures.push(error);
    const counts = new ReportOutcomes(reader, { askEveryMs: 10, giveUpAfterMs, onError });
    try {
      return await Promise.all([counts.of(crypto.randomUUID()), counts.of(crypto.randomUUID())]);
    } finally {
      await counts.stop();
      reader.close();
    }
  };
  afterEach(() => {
    failures.length = 0;
  });

  test('for ever where the server does not know the report', async () => {
    expect(await ask(db.address.url, 200)).toEqual([undefined, undefined]);
    expect(failures).toEqual([]);
  });

  test('where the server does not answer', async () => {
    expect(await ask('http://127.0.0.1:9', 60_000)).toEqual([undefined, undefined]);
    expect(failures).toEqual([expect.objectContaining({ code: 'ECONNREFUSED' })]);
  });

  test('when the service stops', async () => {
    const reader = new Reader(db.address, 10_000);
    const counts = new ReportOutcomes(reader, {
      askEveryMs: 60_000,
      onError: (error) => void failures.push(error),
    });
    const waiting = counts.of(crypto.randomUUID());
    await counts.stop();
    expect(await waiting).toBeUndefined();
    expect(failures).toEqual([]);
    reader.close();
  });
});

test('what goes on failing is told of each minute, also where the clock was set back meanwhile', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  try {
    const said: string[] = [];
    const fail = throttledErrorLog(openLog('info', { write: (line) => void said.push(line) }), 'not read');
    fail(new Error('first'));
    vi.setSystemTime(Date.now() - 3_600_000);
    fail(new Error('at once'));
    vi.advanceTimersByTime(61_000);
    fail(new Error('later'));
    expect(said.map((line) => JSON.parse(line).err.message)).toEqual(['first', 'later']);
  } finally {
    vi.useRealTimers();
  }
});
