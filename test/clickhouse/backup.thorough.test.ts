import { describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { useCluster } from '../support/cluster.ts';
import { type EventLine, event, load } from '../support/events.ts';
import { addressOf, type TestStore, useClusterStore, useStore } from '../support/store.ts';

const events = (prefix: string): EventLine[] =>
  Array.from({ length: 300 }, (_, n) =>
    event({
      event_id: `${prefix}-${n}`,
      event_time: `2026-0${1 + (n % 3)}-05T00:00:00Z`,
      advertiser_id: `advertiser-${n % 20}`,
      publisher_id: `publisher-${(n * 7) % 20}`,
    }),
  );

/** Chunks in doubt: their loader died before it had noted that all of them arrived. */
async function leaveInDoubt({ store, shards }: TestStore, prefix: string): Promise<void> {
  const chunks = await select<{ chunk: string }>(
    store,
    'SELECT DISTINCT chunk FROM events WHERE startsWith(event_id, {prefix:String})',
    { prefix },
  );
  for (const shard of shards) {
    for (const query of [
      'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE chunk IN {chunks:Array(String)}',
      "ALTER TABLE loads UPDATE state = 'failed' WHERE true",
    ]) {
      await shard.command({
        query,
        query_params: { chunks: chunks.map(({ chunk }) => chunk) },
        clickhouse_settings: { mutations_sync: '2' },
      });
    }
  }
}

/** Loads, backs up, loads on, loses everything, restores, and loads all of it again. */
async function loseAndRestore(
  test: TestStore,
  nodes: readonly Store[],
  databases: readonly string[],
): Promise<void> {
  const { store } = test;
  const backup = `${store.address.database}-${process.pid}`;
  const all = databases.map((database) => `DATABASE ${database}`).join(', ');
  await load(store, events('before'), 40_000);
  await load(store, events('doubt'), 40_000);
  await leaveInDoubt(test, 'doubt');
  for (const [n, node] of nodes.entries()) {
    await node.command({ query: `BACKUP ${all} TO File('${backup}-${n}')` });
  }
  await load(store, events('after'), 40_000);
  for (const node of nodes) {
    for (const database of databases) await node.command({ query: `DROP DATABASE ${database} SYNC` });
  }
  for (const [n, node] of nodes.entries()) {
    await node.command({ query: `RESTORE ${all} FROM File('${backup}-${n}')` });
  }
  expect(await checkSchema(store, catalog)).toEqual([]);
  expect(await load(store, events('before'), 40_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
  expect(await load(store, events('doubt'), 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await load(store, events('after'), 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  const counts = 'SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids FROM events';
  expect(await select(store, counts)).toEqual([{ events: 900, ids: 900 }]);
  expect((await verifyRollups(store, catalog)).differences).toEqual([]);
}

const whatIsRestored =
  'that is restored from a backup counts what it has once, and what came later when it is loaded again';

describe('a store of one node', () => {
  const test = useStore();

  it(whatIsRestored, async () => {
    const server = connect({ ...test.store.address, database: 'default' });
    await loseAndRestore(test, [server], [test.store.address.database]).finally(() => server.close());
  });
});

describe('a store of three shards', () => {
  const cluster = useCluster(3);
  const test = useClusterStore(cluster);

  it(whatIsRestored, async () => {
    const servers = cluster.nodes.map((node) => connect(addressOf(node, 'default')));
    const { database } = test.store.address;
    await loseAndRestore(test, servers, [database, `${database}_shard`]).finally(() =>
      Promise.all(servers.map((server) => server.close())),
    );
  });
});
