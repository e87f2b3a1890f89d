import { beforeEach, expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { countFolded, foldEvents } from '../../clickhouse/consistency/fold-events.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { unload } from '../../ingest/history/unload.ts';
import { Load, type LoadCounts } from '../../ingest/ledger/load.ts';
import { months, prune } from '../../src/cli/store/prune.ts';
import { type EventLine, event, load } from '../support/events.ts';
import { all, content, requireAgreement, run } from '../support/rebuilt.ts';
import { onEveryShard, shards, useStore } from '../support/store.ts';
import { failingAt } from '../support/unloads.ts';

const db = useStore();
beforeEach(async () => {
  const ledger = ['loads', 'load_chunks', 'chunk_days', 'withdrawn_chunks', 'pruned_months'];
  for (const table of ['events', ...all.map(({ table }) => table), ...ledger])
    await onEveryShard(db, `TRUNCATE TABLE ${table}`);
});

const keep = { keep: months('25mo'), anyway: true };
const now = new Date('2026-11-20T00:00:00Z');
const old = { event_time: '2023-02-03T12:00:00Z' };
const recent = { event_time: '2026-11-20T12:00:00Z' };
let made = 0;

/** Events of an old day that no other load has. */
const several = (count: number) =>
  Array.from({ length: count }, () =>
    event({
      ...old,
      campaign_id: `c${++made % 3}`,
      ad_unit_id: `u${made % 2}`,
      site_id: `s${made % 3}`,
      spend: `${made}.5`,
      revenue: '0.25',
    }),
  );

const stored = async (condition = '1') =>
  (
    await select<{ rows: number }>(
      db.store,
      `SELECT toUInt32(count()) AS rows FROM events WHERE ${condition}`,
    )
  )[0]?.rows;

const sums = () => content(db.store);

const loaded = async (events: readonly EventLine[]) =>
  (await load(db.store, events)) as LoadCounts & { loadId?: string };

const agrees = () => requireAgreement(db.store);

test('prune keeps every figure of every report, and a rebuild after it, too', async () => {
  const money = { spend: '5', revenue: '7' };
  const against = { spend: '-5', revenue: '-7' };
  await load(db.store, [
    ...several(50),
    event({ ...old, campaign_id: 'cancels', ad_unit_id: 'cancels', ...money }),
    event({ ...old, campaign_id: 'cancels', ad_unit_id: 'cancels', ...against }),
    event({ ...old, campaign_id: 'confirmed', ad_unit_id: 'confirmed', ...money, confirmed: true }),
    event({ ...old, campaign_id: 'confirmed', ad_unit_id: 'confirmed', spend: '0', revenue: '0' }),
    event({ ...old, event_type: 'revenue', campaign_id: 'nothing', ad_unit_id: 'nothing' }),
    event(recent),
  ]);
  await load(db.store, several(50));
  await agrees();
  const before = await sums();
  await prune(db.store, { ...keep, dryRun: true }, now);
  expect(await stored()).toBe(106);
  await prune(db.store, keep, now);
  expect(await stored("chunk != 'folded'")).toBe(1);
  expect(await stored()).toBeLessThan(40);
  expect(await sums()).toEqual(before);
  await agrees();
  await rebuildRollups(db.store, catalog);
  expect(await sums()).toEqual(before);
});

test('prune tells what it was to fold', async () => {
  await load(db.store, [
    ...several(20),
    event({ ...old, event_time: '2023-03-03T12:00:00Z' }),
    event(recent),
  ]);
  const planned = await countFolded(db.store, catalog, '2023-12-31');
  expect(planned).toMatchObject({ events: 21 });
  expect(await foldEvents(db.store, catalog, '2023-12-31')).toEqual(planned);
  expect(await stored("chunk = 'folded'")).toBe(planned.rows);
});

test('what is loaded into a pruned month later is counted once, can be taken back, and is pruned like the rest', async () => {
  await load(db.store, [...several(20), event(recent)]);
  await prune(db.store, keep, now);
  const before = await sums();
  const rows = await stored();
  const { loadId = '' } = await loaded(several(20));
  await agrees();
  await unload(db.store, loadId, () => now);
  expect(await sums()).toEqual(before);
  expect(await stored()).toBe(rows);
  await load(db.store, several(20));
  const then = await sums();
  await prune(db.store, keep, now);
  expect(await stored("chunk != 'folded'")).toBe(1);
  expect(await sums()).toEqual(then);
  await agrees();
});

test('sums that no row of an event can hold are kept to the last digit', async () => {
  const large = Array.from(
    { length: 15 },
    (_, n) => `(${n % 3 ? '' : '-'}900000000000.000001, 1000000000000000000)`,
  );
  // Of a cluster the publishers' rollups are filled by themselves.
  for (const table of shards > 1 ? ['events', 'publisher_events'] : ['events'])
    await run(
      db.store,
      `INSERT INTO ${table} (event_time, advertiser_id, campaign_id, publisher_id, ad_unit_id, spend, revenue, impressions, ad_requests)
     SELECT '2023-02-03 12:00:00', 'a', 'c', 'p', 'u', v.1, v.1, v.2, v.2 FROM (SELECT arrayJoin([${large.join(', ').replaceAll('(', "(toDecimal64('").replaceAll('.000001,', ".000001', 6),")}]) AS v)`,
    );
  const before = await sums();
  await prune(db.store, keep, now);
  expect(await stored("chunk != 'folded'")).toBe(0);
  expect(await sums()).toEqual(before);
  await agrees();
  await prune(db.store, keep, now);
  expect(await sums()).toEqual(before);
});

test('a load whose events were folded cannot be taken back, and the refusal changes nothing', async () => {
  const { loadId = '' } = await loaded([...several(20), event(recent)]);
  const { loadId: later = '' } = await loaded([event(recent)]);
  await prune(db.store, keep, now);
  const before = await sums();
  const rows = await stored();
  await expect(unload(db.store, loadId, () => now)).rejects.toThrow(
    /adtally prune has folded or dropped its events of 2023-02.*Nothing was changed/,
  );
  expect([await sums(), await stored()]).toEqual([before, rows]);
  await agrees();
  expect(await unload(db.store, later, () => now)).toMatchObject({ events: 1 });
  await agrees();
});

test('while a chunk is in doubt, prune changes nothing and says what to do; then it goes on', async () => {
  const events = several(20);
  await load(db.store, several(20));
  const { loadId = '' } = await loaded(events);
  // As if the loader had been killed before it recorded the chunk as loaded.
  await onEveryShard(
    db,
    'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6) WHERE load_id = {loadId:String}',
    { loadId },
  );
  for (const flags of [{}, { reports: true }, { dryRun: true }]) {
    await expect(prune(db.store, { ...keep, ...flags }, now)).rejects.toThrow(
      /Run its command again, or have its body sent again, which completes the chunk, or take it back with adtally unload .*; then prune/,
    );
  }
  expect(await stored()).toBe(40);
  expect(await select(db.store, 'SELECT month FROM pruned_months')).toEqual([]);
  // For a load at work prune waits, and then no chunk of it is in doubt.
  const other = await Load.begin(db.store, { kind: 'events', file: 'under way' }, new Date());
  await prune(db.store, { ...keep, dryRun: true }, now);
  await other.finish();
  await load(db.store, events);
  const before = await sums();
  await prune(db.store, keep, now);
  expect(await stored("chunk != 'folded'")).toBe(0);
  expect(await sums()).toEqual(before);
  await agrees();
});

test('what was taken back, or all rows with --reports, is not dropped where no close has kept the month', async () => {
  const { loadId = '' } = await loaded(several(5));
  await unload(db.store, loadId, () => now);
  const carefully = { ...keep, anyway: false };
  const before = await stored();
  for (const [flags, lost] of [
    [carefully, 'events that were taken back or replaced'],
    [{ ...carefully, reports: true }, 'rows'],
  ] as const) {
    for (const dryRun of [false, true]) {
      await expect(prune(db.store, { ...flags, dryRun }, now)).rejects.toThrow(
        `nothing was pruned: ${lost} would be lost in 2 months that their accounts have not closed, the first 2023-02 of `,
      );
    }
  }
  expect(await stored()).toBe(before);
  // All events of the months are gone.
  await expect(prune(db.store, carefully, now)).rejects.toThrow(
    /where that has nothing to close, prune --anyway$/,
  );
  await prune(db.store, keep, now);
  await prune(db.store, carefully, now);
});

test('--reports drops old months for good: nothing brings half of one back', async () => {
  const { loadId = '' } = await loaded([...several(20), event(recent)]);
  const replayed = several(5);
  await prune(db.store, keep, now);
  await load(db.store, replayed);
  const ofNow = { event_time: '2026-11-20T13:00:00Z' };
  await load(db.store, [event(ofNow)]);
  await prune(db.store, { ...keep, reports: true }, now);
  expect(await stored()).toBe(2);
  const rows = () =>
    select(
      db.store,
      `SELECT DISTINCT toString(day) AS day FROM campaigns_device_date UNION DISTINCT SELECT DISTINCT toString(day) FROM ad_units_date`,
    );
  const left = [{ day: '2026-11-20' }];
  expect(await rows()).toEqual(left);
  await load(db.store, replayed);
  await expect(unload(db.store, loadId, () => now)).rejects.toThrow(/of 2023-02/);
  await rebuildRollups(db.store, catalog);
  expect(await rows()).toEqual(left);
  await agrees();
});

test('a prune that is killed before or after it replaces the events is ended by the next one', async () => {
  const { loadId = '' } = await loaded(several(20));
  const before = await sums();
  // Shards are asked by connections of their own: test/cluster/cluster-prune.thorough.test.ts kills them.
  const killedAt = shards > 1 ? /^INSERT INTO pruned_months/ : /^EXCHANGE TABLES/;
  for (const when of ['before', 'after'] as const) {
    const killed = failingAt(db.store, killedAt, when);
    await expect(prune(killed, keep, now)).rejects.toThrow('killed');
    expect(await sums()).toEqual(before);
    await agrees();
    if (shards === 1 || when === 'after')
      await expect(unload(db.store, loadId, () => now)).rejects.toThrow(/of 2023-02/);
  }
  await prune(db.store, keep, now);
  expect(await stored("chunk != 'folded'")).toBe(0);
  expect(await sums()).toEqual(before);
  await agrees();
});
