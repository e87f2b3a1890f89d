import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, inject } from 'vitest';
import type { Cluster } from '../../bench/cluster/local-cluster.ts';
import { type Address, connect, type Server, type Store } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { readMigrations } from '../../clickhouse/migrate/migration-files.ts';
import { schemaFile } from '../../clickhouse/migrate/write-schema.ts';
import { writeSettings } from '../../clickhouse/settings.ts';
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

/** A migrated database of its own for the tests of one file, gone at the end. */
export function useStore(reportTimezone?: string): TestStore {
  if (shards > 1) return useClusterStore(useCluster(shards), reportTimezone);
  return useOpened(async (database) => {
    const address = { ...inject('clickhouse'), database };
    await (reportTimezone ? migrate(address, reportTimezone) : createMigrated(address));
    const store = connect(address);
    return { address, store, shards: [store] };
  });
}

/**
 * What `migrate` makes of a new store, in a third of the time: from the page of the whole schema, which
 * clickhouse/events-schema.test.ts holds in step with the migrations.
 */
export async function createMigrated(address: Address): Promise<void> {
  const store = connect(address);
  const server = connect({ ...address, database: 'default' });
  await server.command({ query: `CREATE DATABASE ${address.database}` });
  await server.close();
  const statements = readFileSync(schemaFile, 'utf8')
    .replace(/^--.*\n/gm, '')
    .split(/;\n+/)
    .filter(Boolean);
  const isView = (statement: string) => /^CREATE (MATERIALIZED )?VIEW/.test(statement);
  const isDictionary = (statement: string) => statement.startsWith('CREATE DICTIONARY');
  for (const query of statements.filter((each) => !isView(each) && !isDictionary(each))) {
    await store.command({ query });
  }
  const values = (await readMigrations()).map(({ version, name, checksum }) => ({ version, name, checksum }));
  await store.insert({ table: 'migrations', values, format: 'JSONEachRow' });
  await writeSettings(store, { timezone: 'UTC', cluster: '', shards: 1, firstShards: 1 });
  // The page does not show the password that dictionaries read with.
  await migrate(address, undefined, { renewDictionaries: true });
  for (const query of statements.filter(isView)) await store.command({ query });
  await store.close();
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
    // A cluster is gone with the tests of its file.
    if (shards[0] === store)
      await store.command({ query: `DROP DATABASE IF EXISTS ${store.address.database} SYNC` });
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
