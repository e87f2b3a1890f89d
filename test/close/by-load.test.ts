import { parse } from 'lossless-json';
import { expect, test } from 'vitest';
import { questionPath } from '../../catalog/breakdowns.ts';
import { select } from '../../clickhouse/client.ts';
import { unload } from '../../ingest/history/unload.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { close, march, useCloses } from '../support/closes.ts';
import { type EventLine, event, load, ndjson } from '../support/events.ts';
import { micros, type Row } from '../support/oracle.ts';
import { replaceBy } from '../support/replace-suite.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { failingAt, useUnloads } from '../support/unloads.ts';

const db = useStore();
const service = useService(db);
const unloads = useUnloads(db);
const closes = useCloses(db, service);
const now = () => new Date();

async function adjusted(body: object = {}, family = 'campaigns'): Promise<Row[]> {
  const { account } = unloads;
  const response = await service.post(questionPath(family, 'adjustments'), account, { ...march, ...body });
  expect(response.status).toBe(200);
  return (parse(await response.text()) as { result: { rows: Row[] } }).result.rows;
}

const split = async (body: object = {}) =>
  (await adjusted({ ...body, by_load: true })).map(
    ({ campaign_id, change, load, reason, impressions, spent }) =>
      [campaign_id, change, load, reason, impressions, spent].map(String),
  );

/** Split rows add up to those that are not split, which are all there are. */
async function expectSums(): Promise<void> {
  for (const family of ['campaigns', 'ad_units']) {
    const sums = (rows: readonly Row[]) => {
      const found = new Map<string, bigint>();
      for (const { changed_at: _, change: __, load: ___, reason: ____, ...row } of rows) {
        const key = JSON.stringify(Object.entries(row).filter(([, value]) => typeof value === 'string'));
        for (const [name, value] of Object.entries(row)) {
          if (typeof value !== 'string')
            found.set(`${name} ${key}`, (found.get(`${name} ${key}`) ?? 0n) + micros(`${value}`));
        }
      }
      return found;
    };
    const plain = await adjusted({}, family);
    expect(plain.length).toBeGreaterThan(0);
    expect(sums(await adjusted({ by_load: true }, family))).toEqual(sums(plain));
  }
}

test('an adjustment is told by load, time and reason, and what nobody can tell is said', async () => {
  const { account } = unloads;
  const of = (campaign_id: string, fields: Partial<EventLine> = {}) =>
    event({ advertiser_id: account, publisher_id: account, campaign_id, ...fields });
  const written = async (...lines: EventLine[]) =>
    unloads.file(`${lines[0]?.event_id}.ndjson`, ndjson(lines));
  const loaded = async (...lines: EventLine[]) => unloads.load(await written(...lines));

  const first = await loaded(of('a', { quantity: 10, spend: '1' }), of('b'), of('c', { spend: '7' }));
  const second = await loaded(of('a', { quantity: 5, reason: 'makegood' }), of('d'));
  const third = await loaded(of('b', { quantity: 3 }));
  await close(db.store, '2026-03', account, { anyway: true });
  expect(await split()).toEqual([]);

  const more = await loaded(
    of('a', { quantity: 2, spend: '0.25' }),
    of('a', { quantity: 1, spend: '-0.5', reason: 'invalid traffic' }),
    of('a', { quantity: 1, spend: '-0.000001', reason: 'invalid traffic' }),
  );
  await unload(db.store, second, now);
  const same = of('b', { quantity: 3 });
  const by: Record<string, string> = {
    '': '',
    [first]: 'first',
    [second]: 'second',
    [third]: 'third',
    [more]: 'more',
  };
  const replace = async (load: string, ...lines: EventLine[]) => {
    const { loadId } = await replaceBy(db.store, { load }, await written(...lines));
    if (loadId === undefined) throw new Error('the replacement has no load');
    by[loadId] = 'replacement';
  };
  await replace(third, same, of('e'));
  const named = async () =>
    (await split()).map(([campaign, change, load = '', ...row]) =>
      [campaign, change, by[load] ?? load, ...row].join(' | '),
    );
  // Of b as much came as was replaced, so there is no adjustment to be told.
  expect((await named()).sort()).toEqual(
    [
      'a | loaded | more | | 2 | 0.25',
      'a | loaded | more | invalid traffic | 2 | -0.500001',
      'a | taken_back | second | makegood | -5 | 0',
      'd | taken_back | second | | -1 | 0',
      'e | loaded | replacement | | 1 | 0',
    ].map((row) => row.replaceAll('| |', '|  |')),
  );
  await expectSums();
  const times = (await adjusted({ by_load: true })).map(({ changed_at }) => String(changed_at));
  for (const at of times) expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(3_600_000);

  await replace(first, of('c', { spend: '6.5' }));
  await db.store.insert({
    table: 'events',
    values: [
      { ...{ advertiser_id: account, campaign_id: 'f', impressions: 4 }, event_time: '2026-03-01 12:00:00' },
    ],
    format: 'JSONEachRow',
  });
  expect((await named()).filter((row) => /^[cf]/.test(row)).sort()).toEqual([
    'c | loaded | replacement |  | 1 | 6.5',
    'c | replaced | first |  | -1 | -7',
    'f | by_hand |  |  | 4 | 0',
  ]);

  await prune(db.store, { keep: 1, anyway: true }, new Date('2026-05-15T00:00:00Z'));
  const left = ['-11 | -1.250001', '-1 | 0', '0 | -0.5', '-1 | 0', '1 | 0', '4 | 0'];
  expect(await named()).toEqual(left.map((sums, n) => `${'abcdef'[n]} | unknown |  |  | ${sums}`));
  const late = await loaded(of('a', { reason: 'chargeback' }));
  expect((await split()).filter(([campaign]) => campaign === 'a')).toEqual([
    ['a', 'unknown', '', '', '-11', '-1.250001'],
    ['a', 'loaded', late, 'chargeback', '1', '0'],
  ]);
  await expectSums();
});

test('a load of many chunks is one row, also when it was interrupted before the close and completed after it', async () => {
  const { account } = unloads;
  const lines = unloads.events(60, { publisher_id: account, event_time: '2026-03-01T12:00:00Z' });
  await load(db.store, [event({ advertiser_id: account, publisher_id: account })]);
  const killed = failingAt(db.store, /INSERT INTO load_chunks .*sent_at\)/s, 'after');
  await expect(load(killed, lines, 2_000)).rejects.toThrow('killed');
  await close(db.store, '2026-03', account, { anyway: true });
  await load(db.store, lines, 2_000);
  const [{ chunks, id } = { chunks: 0, id: '' }] = await select<{ chunks: number; id: string }>(
    db.store,
    "SELECT chunks, load_id AS id FROM loads FINAL WHERE kind = 'events' ORDER BY turn DESC LIMIT 1",
  );
  expect(chunks).toBeGreaterThan(2);
  expect(await split()).toEqual([['campaign', 'loaded', id, '', '60', '6']]);
  await expectSums();
});

test('since an older close the loads that the newer one has are told, too', async () => {
  const { account } = unloads;
  const loaded = async (impressions: number) => {
    const line = event({ advertiser_id: account, quantity: impressions, reason: `${impressions}` });
    return unloads.load(await unloads.file(`${impressions}.ndjson`, ndjson([line])));
  };
  await loaded(1);
  await close(db.store, '2026-03', account, { anyway: true });
  const second = await loaded(2);
  await close(db.store, '2026-03', account, { anyway: true });
  const third = await loaded(3);
  const since = (await closes.of(account)).map(({ revision }) => split({ as_of: revision }));
  const told = [second, third].map((id, n) => ['campaign', 'loaded', id, `${n + 2}`, `${n + 2}`, '0']);
  expect(await Promise.all(since)).toEqual([told.slice(1), told]);
  expect(await split()).toEqual(told.slice(1));
});

test('every format tells the same loads', async () => {
  const { account } = unloads;
  const lines = ndjson(unloads.events(20));
  await unloads.load(await unloads.file('before.ndjson', lines));
  await close(db.store, '2026-03', account, { anyway: true });
  const load = await unloads.load(await unloads.file('after.ndjson', ndjson(unloads.events(20))));
  const body = { ...march, by_load: true, totals: true, limit: 3 };
  const csv = await service.post(questionPath('campaigns', 'adjustments'), account, body, {
    accept: 'text/csv',
  });
  expect(csv.headers.get('adtally-totals')).toContain('impressions="20"');
  const rows = (await csv.text()).trim().split('\n');
  expect(rows).toHaveLength(4);
  expect(rows[0]).toContain('"changed_at","change","load","reason"');
  for (const row of rows.slice(1)) expect(row).toContain(`"loaded","${load}",""`);
  for (const type of ['vnd.apache.parquet', 'vnd.apache.arrow.stream', 'x-ndjson']) {
    const accept = `application/${type}`;
    const answer = await service.post(questionPath('campaigns', 'adjustments'), account, body, { accept });
    expect([answer.status, Buffer.from(await answer.arrayBuffer()).includes(load)], type).toEqual([
      200,
      true,
    ]);
  }
});
