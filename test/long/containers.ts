import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Cluster } from '../../bench/cluster/local-cluster.ts';
import { catalog } from '../../catalog/catalog.ts';
import { connect, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { startContainers } from '../support/containers.ts';
import { event, load } from '../support/events.ts';
import { recountInNewYork, recountRandomEvents, somePairs } from '../support/oracle-suite.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

let started: Cluster;
beforeAll(async () => {
  started = await startContainers();
});
afterAll(() => started?.stop());

const cluster: Cluster = {
  name: 'adtally',
  get nodes() {
    return started.nodes;
  },
  answers: () => started.answers(),
  resize: (shards) => started.resize(shards),
  stop: () => started.stop(),
};
const useStore = (reportTimezone?: string) => useClusterStore(cluster, reportTimezone);

recountRandomEvents(useStore, [1]);
recountInNewYork(useStore, somePairs);

it('a replica that is killed during a load is caught up, and every event is counted once', async () => {
  const [first, second, third] = cluster.nodes;
  if (!first || !second || !third) throw new Error('there are four nodes');
  await migrateCluster(addressOf(first, 'killed'), cluster.name);
  const store = connect(addressOf(third, 'killed'));
  const replicas = [first, second].map((node) => connect(addressOf(node, 'killed_shard')));
  try {
    expect(await checkSchema(store, catalog)).toEqual([]);
    const events = Array.from({ length: 20_000 }, (_, n) =>
      event({ advertiser_id: `a${n % 50}`, publisher_id: `p${n % 40}` }),
    );
    const loading = load(store, events, 100_000);
    await first.kill();
    expect(await loading).toMatchObject({ rows: 20_000 });
    await first.restart();
    for (const replica of replicas) {
      for (const table of ['events', 'campaigns_date', 'ad_units_date', 'load_chunks', 'chunk_days']) {
        await replica.command({ query: `SYSTEM SYNC REPLICA ${table}` });
      }
    }
    const sums =
      'SELECT (SELECT count() FROM events) AS events, (SELECT sum(r.impressions) FROM campaigns_date AS r) AS campaigns, (SELECT sum(r.impressions) FROM ad_units_date AS r) AS ad_units';
    const [one, two] = await Promise.all(replicas.map((replica) => select(replica, sums)));
    expect(one).toEqual(two);
    expect(await select(store, sums)).toEqual([{ events: 20_000, campaigns: 20_000, ad_units: 20_000 }]);
    expect(await load(store, events, 100_000)).toMatchObject({ rows: 0, repeatedRows: 20_000 });
    expect((await verifyRollups(store, catalog)).differences).toEqual([]);
  } finally {
    await Promise.all([store, ...replicas].map((client) => client.close()));
  }
});
