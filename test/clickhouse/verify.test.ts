import type { ClickHouseSettings } from '@clickhouse/client';
import { beforeEach, expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { rollups, selectOf } from '../../clickhouse/rollups.ts';
import { event, load } from '../support/events.ts';
import { useStore } from '../support/store.ts';

const testStore = useStore();
const all = rollups(catalog);
const finest = 'campaigns_device_creative_date';

beforeEach(async () => {
  const tables = ['events', 'loads', 'load_chunks', ...all.map(({ table }) => table)];
  for (const table of tables) await run(`TRUNCATE TABLE ${table}`);
});

test('what the loader stored is verified without differences', async () => {
  await loadTwoMonths();
  expect(await verifyRollups(testStore.store, catalog)).toEqual({ differences: [], more: false });
});

test('a rollup that lost or gained something is named with account, day, measure and both values', async () => {
  await loadTwoMonths();
  await run("ALTER TABLE campaigns_date DELETE WHERE campaign_id = 'lost'", { mutations_sync: '2' });
  await run(
    "INSERT INTO ad_units_site_date (account_id, day, ad_unit_id, site_id, estimated_revenue, unconfirmed_at) VALUES ('publisher', '2026-04-01', 'ad-unit', '', 0.000001, '2106-01-01 00:00:00.000001')",
  );
  const { differences } = await verifyRollups(testStore.store, catalog);
  const lost = { table: 'campaigns_date', account: 'advertiser', day: '2026-03-01' };
  const gained = { table: 'ad_units_site_date', account: 'publisher', day: '2026-04-01' };
  expect(differences).toEqual([
    { ...lost, measure: 'impressions', events: '8', rollup: '1' },
    { ...lost, measure: 'keys', events: '2', rollup: '1' },
    { ...lost, measure: 'spent', events: '12345678901.000002', rollup: '0.000001' },
    { ...gained, measure: 'estimated_revenue', events: '0.5', rollup: '0.500001' },
    {
      ...gained,
      measure: 'unconfirmed_at',
      events: expect.stringMatching(/^20\d\d-.*\.\d{6}$/),
      rollup: '2106-01-01 00:00:00.000001',
    },
  ]);
});

test('a missing row whose sums are all zero is found', async () => {
  await load(testStore.store, [event({ event_type: 'revenue', campaign_id: 'zero' })]);
  await run("ALTER TABLE campaigns_device_date DELETE WHERE campaign_id = 'zero'", { mutations_sync: '2' });
  expect((await verifyRollups(testStore.store, catalog)).differences).toEqual([
    {
      table: 'campaigns_device_date',
      account: 'advertiser',
      day: '2026-03-01',
      measure: 'keys',
      events: '1',
      rollup: '0',
    },
  ]);
});

test('sums at the wrong key are found where they add up all the same', async () => {
  await load(testStore.store, [event({ campaign_id: 'a' }), event({ campaign_id: 'b' })]);
  await run(
    "INSERT INTO campaigns_date (account_id, day, campaign_id, impressions) VALUES ('advertiser', '2026-03-01', 'a', 5), ('advertiser', '2026-03-01', 'b', toUInt128('340282366920938463463374607431768211451'))",
  );
  expect((await verifyRollups(testStore.store, catalog)).differences).toMatchObject([
    { table: 'campaigns_date', measure: 'rows', events: '0', rollup: '2' },
  ]);
});

test('the first thousand differences are listed, and that there are more', async () => {
  await run(
    "INSERT INTO campaigns_date (account_id, day, campaign_id) SELECT toString(number), '2026-03-01', 'c' FROM numbers(1001)",
  );
  const { differences, more } = await verifyRollups(testStore.store, catalog);
  expect([differences.length, more]).toEqual([1000, true]);
  await run("ALTER TABLE campaigns_date DELETE WHERE account_id = '0'", { mutations_sync: '2' });
  const exactly = await verifyRollups(testStore.store, catalog);
  expect([exactly.differences.length, exactly.more]).toEqual([1000, false]);
});

test('rows loaded while a view was missing are found, and rebuilt', async () => {
  const view = all.find(({ table }) => table === finest);
  if (!view) throw new Error(`the catalog has no ${finest}`);
  await load(testStore.store, [event({ event_id: 'before' })]);
  await run(`DROP TABLE ${view.view} SYNC`);
  try {
    await load(testStore.store, [event({ event_id: 'meanwhile' })]);
  } finally {
    await run(`CREATE MATERIALIZED VIEW ${view.view} TO ${view.table} AS ${selectOf(view)}`);
  }
  const { differences } = await verifyRollups(testStore.store, catalog);
  expect(differences.filter(({ measure }) => measure === 'impressions')).toMatchObject(
    all
      .filter(({ table }) => table.startsWith('campaigns'))
      .map(({ table }) => ({ table, events: '2', rollup: '1' })),
  );

  const steps: string[] = [];
  const rebuilt = await rebuildRollups(testStore.store, catalog, undefined, {
    onStep: (step) => steps.push(step),
  });
  expect(rebuilt).toEqual({ months: 1, rollups: 8 });
  expect(steps).toEqual(all.map(({ table }, n) => `${n + 1}/8 ${table}`));
  expect((await verifyRollups(testStore.store, catalog)).differences).toEqual([]);
});

test('a range leaves other days unread and other months as they are', async () => {
  await loadTwoMonths();
  await run("ALTER TABLE campaigns_date DELETE WHERE campaign_id = 'lost'", { mutations_sync: '2' });
  await run("ALTER TABLE campaigns_date DELETE WHERE day = '2026-04-01'", { mutations_sync: '2' });
  const days = async (from: string, to: string) => [
    ...new Set(
      (await verifyRollups(testStore.store, catalog, { from, to })).differences.map(({ day }) => day),
    ),
  ];
  expect(await days('2026-03-02', '2026-03-31')).toEqual([]);
  expect(await days('2026-03-01', '2026-03-01')).toEqual(['2026-03-01']);

  expect(
    await rebuildRollups(testStore.store, catalog, { from: '2026-03-31', to: '2026-03-31' }),
  ).toMatchObject({
    months: 1,
  });
  expect(await days('2026-01-01', '2026-12-31')).toEqual(['2026-04-01']);
});

test('a month without events ends up empty', async () => {
  await loadTwoMonths();
  await run('ALTER TABLE events DROP PARTITION 202604');
  await rebuildRollups(testStore.store, catalog);
  expect(await rows(`SELECT DISTINCT day FROM ${finest}`)).toEqual([{ day: '2026-03-01' }]);
  expect((await verifyRollups(testStore.store, catalog)).differences).toEqual([]);
});

test('a chunk that may be sent again has to be finished before a rebuild, of any month', async () => {
  await load(testStore.store, [event()]);
  await run('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6) WHERE 1', { mutations_sync: '2' });
  await load(testStore.store, [event({ event_time: '2026-05-05T12:00:00Z' })]);
  const cutOff = /load \d{14}-\w+ was interrupted.*events\.ndjson/s;
  await expect(rebuildRollups(testStore.store, catalog)).rejects.toThrow(cutOff);
  const may = { from: '2026-05-01', to: '2026-05-31' };
  await expect(rebuildRollups(testStore.store, catalog, may)).rejects.toThrow(cutOff);
  const april = { from: '2026-04-01', to: '2026-04-30' };
  await expect(rebuildRollups(testStore.store, catalog, april)).resolves.toEqual({ months: 0, rollups: 8 });
});

async function loadTwoMonths(): Promise<void> {
  await load(testStore.store, [
    event({ spend: '0.000001' }),
    event({
      campaign_id: 'lost',
      creative_id: 'x',
      quantity: 7,
      spend: '12345678901.000001',
      confirmed: true,
    }),
    event({ event_time: '2026-04-01T00:00:00Z', event_type: 'revenue', revenue: '0.5' }),
  ]);
}

function rows(query: string): Promise<unknown[]> {
  return select(testStore.store, query);
}

async function run(query: string, settings: ClickHouseSettings = {}): Promise<void> {
  await testStore.store.command({ query, clickhouse_settings: settings });
}
