import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { useCluster } from '../support/cluster.ts';
import { event, load } from '../support/events.ts';
import { useClusterStore } from '../support/store.ts';

/** The limits of a server that keep people from dropping much by mistake, 50 GB by default. */
const limits = ['table', 'partition'].map((what) => `<max_${what}_size_to_drop>1</max_${what}_size_to_drop>`);
const db = useClusterStore(useCluster(2, { more: limits.join('') }));
const now = new Date('2026-11-20T00:00:00Z');
const count = async (table: string) =>
  (await select<{ rows: number }>(db.store, `SELECT toUInt32(count()) AS rows FROM ${table}`))[0]?.rows;

test('old months go from every shard, raw events alone or with their reports, however large they are', async () => {
  const lines = ['2020-01-15', '2023-10-31', '2023-11-01', '2026-11-01'].flatMap((event_time) =>
    Array.from({ length: 20 }, (_, n) =>
      event({ event_time, advertiser_id: `a${n}`, publisher_id: `p${n}`, spend: '1' }),
    ),
  );
  await load(db.store, lines);
  await prune(db.store, { keep: 36, dryRun: true }, now);
  expect(await count('events')).toBe(80);
  await prune(db.store, { keep: 36 }, now);
  expect(await count('events')).toBe(40);
  expect(await count('campaigns_date')).toBe(80);
  expect(await verifyRollups(db.store, catalog, { from: '2023-11-01', to: '2149-06-06' })).toEqual({
    differences: [],
    more: false,
  });
  await prune(db.store, { keep: 36, reports: true }, now);
  expect(await count('campaigns_date')).toBe(40);
  expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
  await rebuildRollups(db.store, catalog);
  expect(await count('campaigns_date')).toBe(40);
});
