import { Writable } from 'node:stream';
import pino from 'pino';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { defaultPaceRules } from '../../../src/http/report/gate/pace.ts';
import { reportFormats } from '../../../src/report/formats.ts';
import { insertLarge } from '../../support/accounts.ts';
import { event, load, loadRows } from '../../support/events.ts';
import { openReport } from '../../support/process.ts';
import { metric, type TestService, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const lines: Record<string, unknown>[] = [];
const log = pino(
  { level: 'info' },
  new Writable({
    write: (chunk, _, done) => {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  }),
);
const service = useService(db, { MAX_CONCURRENT_REPORTS: '2' }, log);
const without = useService(db, { ANSWER_CACHE_MEGABYTES: '0' });
const trusting = useService(db, { ANSWER_TRUST_MS: '60000' });

const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const cacheOf = (response: Response) => response.headers.get('cache-status')?.replace('adtally; ', '');

beforeAll(async () => {
  await load(db.store, [
    event({ spend: '1.25', revenue: '0.75' }),
    event({ event_time: '2026-03-05T00:00:00Z', revenue: '2', site_id: 'site' }),
    event({ event_time: '2026-03-06T00:00:00Z', publisher_id: '', ad_unit_id: '', device: 'tv' }),
  ]);
  // Each service looks for the last load by a clock of its own.
  for (const each of [service, without]) {
    const lastLoad = async () =>
      (await each.post('/v1/campaigns', 'nobody', march)).headers.get('last-modified');
    await vi.waitUntil(lastLoad, { timeout: 20_000 });
  }
});

const codings = ['identity', 'gzip', 'br', 'zstd'] as const;
const varying =
  /^(date|x-request-id|ratelimit|cache-status|content-length|transfer-encoding|adtally-last-update-time)$/;

describe.each(codings)('in %s', (coding) => {
  test.each(Object.entries(reportFormats))(
    'an answer from memory is the computed one: %s',
    async (name, format) => {
      const path = '/v1/ad_units/breakdowns/devices';
      const headers = { accept: format.mediaType, 'accept-encoding': coding };
      const ask = async (from: TestService) => {
        const response = await from.post(path, 'publisher', march, headers);
        const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
        const time =
          /"last_update_time":"([^"]+)"/.exec(text)?.[1] ?? response.headers.get('adtally-last-update-time');
        return { response, time: time ?? '', text: name === 'json' ? text.replace(time ?? '', '') : text };
      };
      const asked = new Date();
      await ask(service);
      const hit = await ask(service);
      const computed = await ask(without);
      expect([cacheOf(hit.response), cacheOf(computed.response)]).toEqual(['hit', 'fwd=bypass']);
      expect(hit.text).toBe(computed.text);
      const kept = ({ response }: typeof hit) =>
        [...response.headers].filter(([header]) => !varying.test(header));
      expect(kept(hit)).toEqual(kept(computed));
      expect(Date.parse(hit.time.replaceAll('"', ''))).toBeGreaterThanOrEqual(asked.getTime() - 1_000);
    },
  );
});

test('last_update_time is of the request, not of the answer in memory', async () => {
  const first = await service.report('/v1/campaigns', 'advertiser', '2026-03-01', '2026-03-01');
  const later = () => service.report('/v1/campaigns', 'advertiser', '2026-03-01', '2026-03-01');
  await expect
    .poll(async () => (await later()).last_update_time, { timeout: 5_000 })
    .not.toBe(first.last_update_time);
});

test('every change is in the next answer', async () => {
  const path = '/v1/ad_units/breakdowns/site';
  const ask = async () => {
    const response = await service.post(path, 'changing', march);
    const { result } = JSON.parse(await response.text());
    return [
      cacheOf(response),
      result.rows.map((row: { site: string; impressions: number }) => [row.site, row.impressions]),
      result.unconfirmed_revenue_dates,
    ];
  };
  const shown = event({ publisher_id: 'changing', site_id: 's', revenue: '1' });
  expect(await ask()).toEqual(['fwd=uri-miss', [], []]);
  await load(db.store, [shown]);
  expect(await ask()).toEqual(['fwd=stale', [['s', 1]], ['2026-03-01']]);
  await loadRows(db.store, 'sites', [['changing', 's', 'Site']]);
  expect(await ask()).toEqual(['fwd=stale', [['Site', 1]], ['2026-03-01']]);
  await loadRows(db.store, 'confirmations', [['changing', '2026-03-01']]);
  expect(await ask()).toEqual(['fwd=stale', [['Site', 1]], []]);
  expect(await ask()).toEqual(['hit', [['Site', 1]], []]);
});

test('what is trusted is not asked for', async () => {
  const ask = async () => cacheOf(await trusting.post('/v1/campaigns', 'trusting', march));
  expect(await ask()).toBe('fwd=uri-miss');
  await load(db.store, [event({ advertiser_id: 'trusting' })]);
  expect(await ask()).toBe('hit');
});

test('nobody is answered from the memory of another account, range, format or endpoint', async () => {
  const accounts = ['a', 'a ', 'a\n', '2026-03-31 a', 'undefined a', 'e\u0301'];
  await load(
    db.store,
    accounts.map((account, n) => event({ advertiser_id: account, campaign_id: `of ${n}`, quantity: n + 1 })),
  );
  const paths = ['/v1/campaigns', '/v1/campaigns/breakdowns/device'];
  for (const round of ['first', 'again']) {
    for (const [n, account] of accounts.entries()) {
      for (const path of paths) {
        for (const end of ['2026-03-31', '2026-04-01']) {
          const response = await service.post(path, account, { start_time: '2026-03-01', end_time: end });
          const { rows, column_metadata } = JSON.parse(await response.text()).result;
          expect(rows).toMatchObject([{ campaign: `of ${n}`, impressions: n + 1, end_time: end }]);
          expect(column_metadata.some(({ id }: { id: string }) => id === 'device')).toBe(
            path.endsWith('device'),
          );
          expect(cacheOf(response)).toBe(round === 'first' ? 'fwd=uri-miss' : 'hit');
        }
      }
    }
  }
});

test('equal requests at the same moment cost one statement', async () => {
  const path = '/v1/ad_units/breakdowns/device_site_date';
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      trusting.post(path, 'together', march, { 'accept-encoding': 'identity' }),
    ),
  );
  const texts = await Promise.all(answers.map((response) => response.text()));
  expect(new Set(texts.map((text) => text.replace(/"last_update_time":"[^"]+"/, ''))).size).toBe(1);
  const found = answers.map(cacheOf);
  expect(found.filter((status) => status === 'fwd=uri-miss')).toHaveLength(1);
  const counted = async () => {
    await db.store.command({ query: 'SYSTEM FLUSH LOGS' });
    const [counts] = await select<{ reports: number; days: number }>(
      db.store,
      `SELECT toUInt32(countIf(query LIKE '%FORMAT Template%')) AS reports, toUInt32(countIf(query LIKE '%unconfirmed_at%')) AS days
       FROM system.query_log WHERE type = 'QueryFinish' AND query LIKE '%''together''%' AND query NOT LIKE '%query_log%'`,
    );
    return counts;
  };
  // ClickHouse notes a query a little after its answer has ended.
  await expect.poll(counted).toEqual({ reports: 1, days: 1 });
});

test('the unconfirmed days of an account are asked for once, whatever its reports', async () => {
  const ranges = ['2026-03-01', '2026-03-02', '2026-03-31'];
  let asked: number | undefined;
  // A report that has waited 300 ms for the state of the store, on a busy machine, asks for the days of its own.
  for (let round = 0; round < 3 && asked !== 1; round++) {
    const account = `days-${round}`;
    await load(db.store, [
      event({ publisher_id: account, revenue: '1' }),
      event({ publisher_id: account, revenue: '1', event_time: '2026-03-02T00:00:00Z' }),
    ]);
    for (const [n, end] of ranges.entries()) {
      const { unconfirmed_revenue_dates } = await service.report('/v1/ad_units', account, '2026-03-01', end);
      expect(unconfirmed_revenue_dates).toEqual(['2026-03-01', '2026-03-02'].slice(0, n + 1));
    }
    const after = await service.report('/v1/ad_units/breakdowns/site', account, '2026-03-02', '2026-03-31');
    expect(after.unconfirmed_revenue_dates).toEqual(['2026-03-02']);
    await db.store.command({ query: 'SYSTEM FLUSH LOGS' });
    const [counted] = await select<{ days: number }>(
      db.store,
      `SELECT toUInt32(count()) AS days FROM system.query_log
       WHERE type = 'QueryFinish' AND query LIKE '%unconfirmed_at%' AND query LIKE '%''${account}''%' AND query NOT LIKE '%query_log%'`,
    );
    asked = counted?.days;
  }
  expect(asked).toBe(1);
});

test('log and metrics tell answers from memory, with their rows', async () => {
  const asked = { 'x-request-id': 'from-memory' };
  await service.post('/v1/campaigns/breakdowns/device', 'advertiser', march);
  await (await service.post('/v1/campaigns/breakdowns/device', 'advertiser', march, asked)).text();
  const line = () => lines.find(({ request }) => request === 'from-memory');
  await expect
    .poll(line, { timeout: 15_000 })
    .toMatchObject({ cache: 'hit', rows: 2, status: 200, complete: true, account: 'advertiser' });
  expect(await metric(service.url, 'adtally_answers_total{cache="hit"}')).toBeGreaterThan(0);
  expect(await metric(service.url, 'adtally_answers_kept')).toBeGreaterThan(0);
  expect(await metric(service.url, 'adtally_answers_kept_bytes')).toBeGreaterThan(1_000);
});

describe('beside a caller that reads nothing', () => {
  const held = { ...defaultPaceRules.held, ms: 60_000 };
  const full = useService(db, { MAX_CONCURRENT_REPORTS: '1' }, undefined, {
    pace: { ...defaultPaceRules, held },
  });
  beforeAll(() => insertLarge(db.store, ['large'], 21_000));

  test('an answer from memory needs no place', async () => {
    const asked = () => full.post('/v1/campaigns', 'advertiser', march);
    await expect.poll(async () => cacheOf(await asked()), { timeout: 20_000 }).toBe('hit');
    const stuck = await openReport(full.url, { token: await full.token('large') });
    await expect.poll(() => metric(full.url, 'adtally_reports_running')).toBe(1);
    const startedAt = performance.now();
    expect(cacheOf(await asked())).toBe('hit');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(await metric(full.url, 'adtally_reports_running')).toBe(1);
    stuck.destroy();
  });
});
