import { parse } from 'lossless-json';
import { expect, test } from 'vitest';
import { familyOf, questionPath } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { unload } from '../../ingest/history/unload.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { close, march, useCloses } from '../support/closes.ts';
import { load, loadRows } from '../support/events.ts';
import { micros, paths, type Row } from '../support/oracle.ts';
import { testSeed as seed } from '../support/random.ts';
import { randomEvents } from '../support/random-events.ts';
import { useRejectedLoads } from '../support/rejected-loads.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const closes = useCloses(db, service);
const rejected = useRejectedLoads(db);
const now = () => new Date();

const closeAnyway = (account: string, month: string) => close(db.store, month, account, { anyway: true });

const newestLoad = async () => {
  const query = "SELECT load_id AS id FROM loads FINAL WHERE kind != 'rebuild' ORDER BY turn DESC LIMIT 1";
  return (await select<{ id: string }>(db.store, query))[0]?.id ?? '';
};

const quarter = { start_time: '2026-01-05', end_time: '2026-03-20' };
const filtered = {
  ...march,
  ...{ ids: true, totals: true, limit: 7, filters: { device: ['mobile', 'unknown'] } },
};
const compared = {
  ...march,
  ...{ compare_to: { start_time: '2026-02-01', end_time: '2026-03-03' }, totals: true },
};
/** Every breakdown, and every option and format of some. */
const asked: readonly (readonly [path: string, body: object, accept?: string])[] = [
  ...paths.map((path) => [path, quarter] as const),
  ...['/v1/campaigns/breakdowns/creative', '/v1/ad_units/breakdowns/device_site_date'].flatMap((path) => [
    [path, filtered] as const,
    [path, compared] as const,
    ...['text/csv', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.parquet'].map(
      (accept) => [path, filtered, accept] as const,
    ),
  ]),
  ['/v1/ad_units/breakdowns/site_date', { ...quarter, time_grain: 'week' }],
  ['/v1/campaigns', { ...march, filters: { campaign: ['Campaign then'] } }],
];

/** Closed rows and adjustments are the rows of today, key by key, and adjustments are only what differs. */
async function expectAdjusted(family: string, account: string): Promise<void> {
  const { dimensions, measures } = familyOf(catalog, family);
  const finest = `/v1/${family}/breakdowns/${dimensions.join('_')}_date`;
  const rowsOf = async (path: string, more: object) => {
    const response = await service.post(path, account, { ...quarter, ...more });
    return (parse(await response.text()) as { result: { rows: Row[] } }).result.rows;
  };
  const ids = { ids: true, metrics: Object.keys(measures) };
  const today = await rowsOf(finest, ids);
  const closed = await rowsOf(finest, { ...ids, as_of: 'closed' });
  const adjustments = await rowsOf(questionPath(family, 'adjustments'), {});
  const keyOf = (row: Row) =>
    JSON.stringify(Object.entries(row).filter(([name]) => /^start_time$|_id$|^device$/.test(name)));
  const sums = (rows: readonly Row[]) => {
    const found = new Map<string, bigint>();
    for (const row of rows) {
      for (const name of Object.keys(measures)) {
        const key = `${keyOf(row)} ${name}`;
        found.set(key, (found.get(key) ?? 0n) + micros(`${row[name]}`));
      }
    }
    return new Map([...found].filter(([, sum]) => sum !== 0n).sort());
  };
  expect(adjustments.length).toBeGreaterThan(10);
  expect(sums([...closed, ...adjustments])).toEqual(sums(today));
  expect(new Set([...sums(adjustments).keys()].map((key) => key.replace(/ \w+$/, ''))).size).toBe(
    adjustments.length,
  );
}

test(`closed months answer as they did when they were closed, whatever comes later (seed ${seed})`, async () => {
  const account = 'both';
  const names = (said: string) =>
    Promise.all([
      loadRows(db.store, 'campaigns', [[account, 'c1', `Campaign ${said}`]]),
      loadRows(db.store, 'creatives', [[account, 'c2', `Creative ${said} "/é`]]),
      loadRows(db.store, 'sites', [[account, 'c1', `Site ${said}`]]),
      loadRows(db.store, 'ad_units', [[account, 'é', `Unit ${said}`]]),
    ]);
  await names('then');
  await load(db.store, randomEvents(seed, 1200), 200_000);
  await confirmDays(db.store, account, '2026-02-01', '2026-02-20');
  const answers = [];
  for (const [path, body, accept] of asked) answers.push(await closes.ask(path, account, body, accept));
  for (const month of ['2026-01', '2026-02', '2026-03']) await closeAnyway(account, month);
  const [third, second, first] = await closes.of(account);

  await load(db.store, randomEvents(seed + 1, 600), 200_000);
  await unload(db.store, await newestLoad(), now);
  await load(db.store, randomEvents(seed + 2, 600), 200_000);
  await confirmDays(db.store, account, '2026-01-01', '2026-03-31');
  await names('later');
  await prune(db.store, { keep: 1, anyway: true }, new Date('2026-05-15T00:00:00Z'));
  for (const [n, [path, body, accept]] of asked.entries()) {
    expect(await closes.ask(path, account, { ...body, as_of: 'closed' }, accept), path).toBe(answers[n]);
  }
  const csv = { ...quarter, as_of: 'closed' };
  const exported = await fetch(`${service.url}/v1/export/campaigns.csv?${new URLSearchParams(csv)}`, {
    headers: { authorization: `Bearer ${await service.token(account)}` },
  });
  const posted = await service.post('/v1/campaigns', account, csv, { accept: 'text/csv' });
  expect([exported.status, await exported.text()]).toEqual([200, await posted.text()]);
  for (const family of Object.keys(catalog.families)) await expectAdjusted(family, account);

  // Closed once more there is a new revision; the first one answers by its name.
  await closeAnyway(account, '2026-03');
  const [again, ...earlier] = await closes.of(account);
  expect(earlier).toEqual([third, second, first]);
  expect(again).toMatchObject({ previous: third?.revision, month: 202603 });
  const today = await closes.ask('/v1/campaigns/breakdowns/device_creative_date', account, march);
  const path = '/v1/campaigns/breakdowns/device_creative_date';
  expect(await closes.ask(path, account, { ...march, as_of: 'closed' })).toBe(today);
  const before = await closes.ask(path, account, { ...march, as_of: third?.revision });
  expect(before).not.toBe(today);
  await closeAnyway(account, '2026-03');
  expect(await closes.of(account)).toHaveLength(4);
  expect(await closes.verified()).toEqual([]);
});

test('rows that were corrected and loaded after the close leave it as it is', async () => {
  const { load: wrong } = await rejected.loadWithRejects(20);
  await expect(close(db.store, '2026-03', rejected.own.account)).rejects.toThrow(
    /not closed: 1 day unconfirmed, 4 rejected rows open/,
  );
  await closeAnyway(rejected.own.account, '2026-03');
  const before = await closes.ask('/v1/campaigns', rejected.own.account, { ...march, as_of: 'closed' });
  expect((await rejected.run('replay', wrong, await rejected.corrected(wrong, 'ndjson', () => 5))).code).toBe(
    0,
  );
  expect(await closes.ask('/v1/campaigns', rejected.own.account, { ...march, as_of: 'closed' })).toBe(before);
  expect(await closes.ask('/v1/campaigns', rejected.own.account, march)).not.toBe(before);
  expect(await closes.of(rejected.own.account)).toMatchObject([
    { rows: 1, open_rejects: 4, unconfirmed: [{ family: 'campaigns', day: '2026-03-01' }] },
  ]);
});
