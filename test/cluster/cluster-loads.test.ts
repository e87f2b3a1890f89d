import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { confirmDays, unconfirmedDays } from '../../ingest/lists/confirmations.ts';
import { listTokens } from '../../src/accounts/tokens.ts';
import { useCluster } from '../support/cluster.ts';
import { impressions, useClusterLoads } from '../support/cluster-loads.ts';
import { type EventLine, event, load, loadRows, ndjson } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const test = useClusterStore(cluster);
const service = useService(test);
const loads = useClusterLoads(cluster, test);
const { node, adtally, total, expectVerified, mutate } = loads;

it('a chunk is counted once in both families, whichever nodes it is sent to and how often', async () => {
  const events = impressions('once', 300);
  expect(await load(node(1), events, 30_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await total('once')).toEqual({ events: 300, campaigns: 300, ad_units: 300 });
  expect(await load(node(2), events, 30_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
  // The loader died before it could note what was acknowledged, on one of the nodes.
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE true');
  expect(await load(node(3), events, 30_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await total('once')).toEqual({ events: 300, campaigns: 300, ad_units: 300 });
  const spread = await select(test.store, 'SELECT _shard_num FROM events GROUP BY 1 ORDER BY 1');
  expect(spread).toEqual([{ _shard_num: 1 }, { _shard_num: 2 }, { _shard_num: 3 }]);
  await expectVerified();
});

it('events without an advertiser are spread by their publisher, and counted', async () => {
  const events = impressions('requests', 300).map(
    ({ advertiser_id: _a, campaign_id: _c, ...line }): EventLine => line,
  );
  await load(test.store, events);
  expect(await total('requests')).toEqual({ events: 300, campaigns: 0, ad_units: 300 });
  const shards =
    "SELECT count(DISTINCT _shard_num) AS shards FROM events WHERE startsWith(event_id, 'requests')";
  expect(await select(test.store, shards)).toEqual([{ shards: 3 }]);
});

it('a load with too many faulty rows leaves nothing of the chunk on any shard', async () => {
  const events = impressions('limit', 300).map((line, n) =>
    n === 299 ? { ...line, device: 'x'.repeat(40) } : line,
  );
  const file = join(loads.folder, 'limit.ndjson');
  await writeFile(file, ndjson(events));
  expect((await adtally(1, 'ingest', 'events', '--max-rejects', '0', file)).code).toBe(1);
  expect(await total('limit')).toEqual({ events: 0, campaigns: 0, ad_units: 0 });
  expect((await adtally(2, 'ingest', 'events', '--dry-run', file)).code).toBe(4);
  expect(await total('limit')).toEqual({ events: 0, campaigns: 0, ad_units: 0 });
});

it('names, tokens and confirmations given to one node hold on every other', async () => {
  await load(test.store, [event({ advertiser_id: 'named', publisher_id: 'paid', spend: '1', revenue: '1' })]);
  await loadRows(node(1), 'campaigns', [['named', 'campaign', 'First']]);
  await loadRows(node(3), 'campaigns', [['named', 'campaign', 'Second']]);
  const report = await service.report('/v1/campaigns', 'named', '2026-03-01', '2026-03-01');
  expect(report).toMatchObject({
    rows: [{ campaign: 'Second' }],
    unconfirmed_revenue_dates: ['2026-03-01'],
  });
  for (const each of loads.nodes) {
    expect(await select(each, "SELECT name FROM campaigns FINAL WHERE account_id = 'named'")).toEqual([
      { name: 'Second' },
    ]);
    expect(await listTokens(each)).toEqual(await listTokens(test.store));
  }
  expect(await confirmDays(node(3), 'named', '2026-03-01', '2026-03-31')).toEqual({ days: 31, changed: 1 });
  expect(await unconfirmedDays(node(2), { account: 'named' })).toBe(0);
  const after = await service.report('/v1/campaigns', 'named', '2026-03-01', '2026-03-01');
  expect(after.unconfirmed_revenue_dates).toEqual([]);
});
