import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { damagedParts, dropDamagedParts } from '../../clickhouse/consistency/damaged-parts.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { useCluster } from '../support/cluster.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';

const cluster = useCluster(2);
const db = useClusterStore(cluster);
const service = useService(db);

const accounts = Array.from({ length: 8 }, (_, n) => `a${n}`);
const ask = async (account: string, month: string) => {
  const days = { start_time: `${month}-01`, end_time: `${month}-28` };
  const response = await service.post('/v1/campaigns', account, days);
  const { code, result } = (await response.json()) as { code?: string; result?: { rows: unknown[] } };
  return code ?? result?.rows;
};
const answers = (month: string) => Promise.all(accounts.map((account) => ask(account, month)));

/** Flips a bit of a part on the second shard, whose ClickHouse starts again. */
async function damage(table: string): Promise<void> {
  const node = cluster.nodes[1];
  const [store] = db.shards.slice(1);
  if (!node || !store) throw new Error('there is no second shard');
  const [part] = await select<{ path: string }>(
    store,
    `SELECT path FROM system.parts WHERE database = currentDatabase() AND active AND table = '${table}' AND partition_id = '202609'`,
  );
  const path = join(part?.path ?? '', 'checksums.txt');
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 4;
  await node.kill();
  writeFileSync(path, bytes);
  await node.restart();
  await cluster.answers();
}

test('a damaged part of one shard is an error of its month, and goes on every node', async () => {
  const lines = ['2026-08-03T00:00:00Z', '2026-09-03T00:00:00Z'].flatMap((event_time) =>
    accounts.map((advertiser_id) => event({ event_time, advertiser_id })),
  );
  await load(db.store, lines);
  const before = [await answers('2026-08'), await answers('2026-09')];
  for (const rows of before.flat()) expect(rows).toHaveLength(1);
  await damage('campaigns_date');
  expect(await answers('2026-09')).toEqual(accounts.map(() => 'figures_damaged'));
  expect(await answers('2026-08')).toEqual(before[0]);
  await rebuildRollups(db.store, catalog);
  expect(await damagedParts(db.store)).toEqual([]);
  expect([await answers('2026-08'), await answers('2026-09')]).toEqual(before);
  await damage('events');
  expect(await answers('2026-09')).toEqual(accounts.map(() => 'figures_damaged'));
  const parts = await damagedParts(db.store);
  expect(parts).toMatchObject([{ table: 'events', partition: '202609' }]);
  await dropDamagedParts(db.store, parts);
  expect(await damagedParts(db.store)).toEqual([]);
  expect(await answers('2026-09')).toEqual(before[1]);
});
