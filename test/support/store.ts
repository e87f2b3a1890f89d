import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, inject } from 'vitest';
import { type Address, connect, type Server, type Store } from '../../clickhouse/client.ts';
import type { Cluster } from '../../clickhouse/embedded/local-cluster.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { useCluster } from './cluster.ts';

export interface TestStore {
  /** Where the service of the tests asks; in a cluster another node than that of `store`. */
  readonly address: Address;
  /** Where the tests load. */
  readonly store: Store;
  /** Where the parts of the tables lie: the store itself, or the local database of each node of a cluster. */
  readonly shards: readonly Store[];
}

/** `TEST_SHARDS=3 npx vitest run test/ingest` runs the same tests on a cluster. */
export const shards = Number(process.env.TEST_SHARDS ?? 1);

/** What a Distributed table does not take, such as a mutation: on every part of the table. */
export async function onEveryShard(
  test: TestStore,
  query: string,
  params: Record<string, unknown> = {},
): Promise<void> {
  const settings = { mutations_sync: '2' } as const;
  for (const shard of test.shards) {
    await shard.command({ query, query_params: params, clickhouse_settings: settings });
  }
}

/** A migrated database of its own for the tests of one file, dropped at the end. */
export function useStore(reportTimezone?: string): TestStore {
  if (shards > 1) return useClusterStore(useCluster(shards), reportTimezone);
  return useOpened(async (database) => {
    const address = { ...inject('clickhouse'), database };
    await migrate(address, reportTimezone);
    const store = connect(address);
    return { address, store, shards: [store] };
  });
}

/** The same on a cluster. */
export function useClusterStore(cluster: Cluster, reportTimezone?: string): TestStore {
  return useOpened(async (database) => {
    const [first, second = first] = cluster.nodes.map((node) => addressOf(node, database));
    if (!first || !second) throw new Error('the cluster has no nodes');
    await migrateCluster(first, cluster.name, reportTimezone);
    const shards = cluster.nodes.map((node) => connect(addressOf(node, `${database}_shard`)));
    return { address: second, store: connect(first), shards };
  });
}

export function addressOf({ url, user, password }: Server, database: string): Address {
  return { url, user, password, database };
}

function useOpened(open: (database: string) => Promise<TestStore>): TestStore {
  let opened: TestStore | undefined;
  beforeAll(async () => {
    opened = await open(`test_${randomBytes(6).toString('hex')}`);
  });
  afterAll(async () => {
    if (!opened) return;
    const { store, shards } = opened;
    const { database } = store.address;
    for (const node of shards) {
      // Views and Distributed tables name the tables of the other database.
      for (const name of new Set([database, node.address.database])) {
        await node.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` });
      }
    }
    await Promise.all([...new Set([store, ...shards])].map((client) => client.close()));
  });
  const get = (): TestStore => {
    if (!opened) throw new Error('the store is there from beforeAll on');
    return opened;
  };
  return {
    get address() {
      return get().address;
    },
    get store() {
      return get().store;
    },
    get shards() {
      return get().shards;
    },
  };
}
