import { afterAll, beforeAll, expect, test } from 'vitest';
import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { Damage } from '../../src/report/damage.ts';
import { StoreVersion } from '../../src/report/kept/store-version.ts';
import { planReport } from '../../src/report/plan.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
let reader: Reader;
let version: StoreVersion;
const failures: unknown[] = [];

const from = () => {
  const { database } = db.address;
  return { catalog, database, damage: new Damage({ reader, database, onFound: () => {} }) };
};
const march = { start: '2026-03-01', end: '2026-03-31' };
const july = { start: '2026-07-01', end: '2026-07-31' };
const table = 'campaigns_device_date';

beforeAll(async () => {
  reader = new Reader(db.address, 10_000);
  version = new StoreVersion({
    ...from(),
    reader,
    trustMs: 0,
    onError: (error) => void failures.push(error),
  });
  await load(db.store, [event(), event({ event_time: '2026-07-01T00:00:00Z' })]);
});
afterAll(() => reader.close());

async function stateOf(path: string, range = march): Promise<string | undefined> {
  const endpoint = endpoints(catalog).find((each) => each.path === path);
  if (!endpoint) throw new Error(`there is no ${path}`);
  return (await version.current())?.ofReport(planReport(catalog, endpoint.breakdown, 'advertiser', range));
}

const sql = (query: string) => db.store.command({ query });
const byDevice = '/v1/campaigns/breakdowns/device';
/** A part of its own: parts of one table, on the first of March. */
const insert = (name: string) =>
  sql(
    `INSERT INTO ${name} (account_id, day, campaign_id, device, impressions) VALUES ('other', '2026-03-01', 'c', 'tv', 1)`,
  );

test.each<[string, () => Promise<unknown>]>([
  ['a load', () => load(db.store, [event()])],
  ['an insert', () => insert(table)],
  [
    'a deletion',
    () => sql(`ALTER TABLE ${table} DELETE WHERE account_id = 'none' SETTINGS mutations_sync = 2`),
  ],
  [
    'a lightweight deletion',
    () => sql(`DELETE FROM ${table} WHERE account_id = 'other' AND day = '2026-03-02'`),
  ],
  [
    'a replaced partition',
    async () => {
      await sql(`CREATE TABLE copy AS ${table}`);
      await insert('copy');
      await sql(`ALTER TABLE ${table} REPLACE PARTITION 202603 FROM copy`);
    },
  ],
  ['exchanged tables', () => sql(`EXCHANGE TABLES ${table} AND copy`)],
  ['tables exchanged back', () => sql(`EXCHANGE TABLES ${table} AND copy`)],
  ['a detached partition', () => sql(`ALTER TABLE ${table} DETACH PARTITION 202603`)],
  ['an attached partition', () => sql(`ALTER TABLE ${table} ATTACH PARTITION 202603`)],
  ['a rebuild', () => rebuildRollups(db.store, catalog, { from: '2026-03-01', to: '2026-03-31' })],
  ['a confirmation', () => confirmDays(db.store, 'advertiser', '2026-03-01', '2026-03-01')],
  ['names', () => loadRows(db.store, 'sites', [['publisher', 'site', 'Site']])],
  ['a name that changes', () => loadRows(db.store, 'campaigns', [['advertiser', 'campaign', 'New']])],
])('%s shows', async (_, change) => {
  const before = await stateOf(byDevice);
  expect(await stateOf(byDevice)).toBe(before);
  await change();
  expect(await stateOf(byDevice)).not.toBe(before);
  expect(failures).toEqual([]);
});

test('every part that a mutation changes shows', async () => {
  // A mutation changes one part after the other: a sum tells each of them, the latest mutation of all would not.
  await insert(table);
  await sql(`ALTER TABLE ${table} DELETE WHERE account_id = 'none' SETTINGS mutations_sync = 2`);
  await insert(table);
  const parts = await select<{ name: string }>(
    db.store,
    `SELECT name FROM system.parts WHERE database = currentDatabase() AND table = '${table}' AND active AND partition = '202603'`,
  );
  const pieces = parts.map(({ name }) => name.split('_').map(Number));
  const most = Math.max(...pieces.map(([, , last = 0]) => last));
  const mutations = pieces.map(([, first = 0, last = 0, , mutation = 0]) => mutation * (last - first + 1));
  expect(mutations.filter((each) => each > 0).length).toBeGreaterThan(0);
  const [view] = await select<{ state: string }>(
    db.store,
    `SELECT state FROM store_state WHERE database = currentDatabase() AND name = '${table}' AND partition = '202603'`,
  );
  expect(view?.state).toBe(`${most} ${mutations.reduce((sum, each) => sum + each, 0)}`);
});

test('what a report does not read shows only in other reports', async () => {
  const before = await Promise.all([stateOf(byDevice), stateOf(byDevice, july), stateOf('/v1/ad_units')]);
  await load(db.store, [
    event({
      advertiser_id: 'advertiser',
      publisher_id: '',
      ad_unit_id: '',
      event_time: '2026-07-02T00:00:00Z',
    }),
  ]);
  const after = await Promise.all([stateOf(byDevice), stateOf(byDevice, july), stateOf('/v1/ad_units')]);
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
  expect(after[2]).toBe(before[2]);
});

test('a merge changes nothing', async () => {
  await sql(`OPTIMIZE TABLE campaigns_creative_date FINAL`);
  for (let n = 0; n < 3; n++) await load(db.store, [event({ quantity: n + 1 })]);
  const path = '/v1/campaigns/breakdowns/creative';
  const before = await stateOf(path);
  await sql('OPTIMIZE TABLE campaigns_creative_date FINAL');
  await sql('OPTIMIZE TABLE campaigns_date FINAL');
  expect(await stateOf(path)).toBe(before);
});

test('those who ask at the same moment share a statement, and nobody gets what was asked before he came', async () => {
  let statements = 0;
  const counting = Object.assign(Object.create(reader), {
    stream: (...args: Parameters<Reader['stream']>) => {
      statements++;
      return reader.stream(...args);
    },
  });
  const trusting = new StoreVersion({ ...from(), reader: counting, trustMs: 60_000, onError: () => {} });
  await Promise.all(Array.from({ length: 50 }, () => trusting.current()));
  await trusting.current();
  expect(statements).toBe(1);
  statements = 0;
  const checking = new StoreVersion({ ...from(), reader: counting, trustMs: 0, onError: () => {} });
  const first = checking.current();
  await Promise.all([first, ...Array.from({ length: 50 }, () => checking.current())]);
  expect(statements).toBe(2);
});

test('damaged parts are asked for once while ClickHouse runs on', async () => {
  const uptime = async () => (await select<{ up: number }>(db.store, 'SELECT uptime() AS up'))[0]?.up;
  // One that started a moment ago is asked again.
  await expect.poll(uptime, { timeout: 30_000, interval: 200 }).toBeGreaterThan(10);
  let asked = 0;
  const counting = Object.assign(Object.create(reader), {
    rows: (...args: Parameters<Reader['rows']>) => {
      asked++;
      return reader.rows(...args);
    },
  });
  const damage = new Damage({ ...from(), reader: counting, onFound: () => {} });
  const checking = new StoreVersion({ ...from(), reader, damage, trustMs: 0, onError: () => {} });
  for (let n = 0; n < 5; n++) expect(await checking.current()).toBeDefined();
  expect(asked).toBe(1);
});

test('a store that does not tell is not asked again at once', async () => {
  const nowhere = new Reader({ ...db.address, url: 'http://127.0.0.1:9' }, 1_000);
  const found: unknown[] = [];
  const unknown = new StoreVersion({
    ...from(),
    reader: nowhere,
    trustMs: 100,
    onError: (error) => void found.push(error),
  });
  for (let n = 0; n < 5; n++) expect(await unknown.current()).toBeUndefined();
  expect(found).toHaveLength(1);
  nowhere.close();
});
