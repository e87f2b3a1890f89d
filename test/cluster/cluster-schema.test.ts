import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { migrate, pendingMigrations } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { readSettings, writeSettings } from '../../clickhouse/settings.ts';
import { useCluster } from '../support/cluster.ts';
import { adtally, makeNewer } from '../support/killed-commands.ts';
import { environmentOf, useCommands } from '../support/process.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const test = useClusterStore(cluster, 'Europe/Vienna');
const commands = useCommands();

it('every node gets the same schema, in the time zone of the cluster, whichever node is asked', async () => {
  const { database } = test.store.address;
  expect(await migrateCluster(test.address, cluster.name)).toEqual([]);
  const schemas = await Promise.all(
    cluster.nodes.map(async (server) => {
      const node = connect(addressOf(server, database));
      const whole = await select<{ name: string }>(
        node,
        `SELECT database, name, create_table_query AS query FROM system.tables
         WHERE database IN ({database:String}, concat({database:String}, '_shard')) ORDER BY database, name`,
        { database },
      );
      const state = {
        whole,
        pending: await pendingMigrations(node),
        settings: await readSettings(node),
        check: await checkSchema(node, catalog),
      };
      await node.close();
      return state;
    }),
  );
  const [first] = schemas;
  expect(first).toMatchObject({
    pending: [],
    settings: { timezone: 'Europe/Vienna', cluster: cluster.name, shards: 3 },
    check: [],
  });
  expect(first?.whole.length).toBeGreaterThan(50);
  for (const schema of schemas) expect(schema).toEqual(first);
});

it('check names the node on which something differs, a view and a way of spreading rows among it', async () => {
  const [, second, third] = test.shards;
  if (!second || !third) throw new Error('there are three shards');
  const local = second.address.database;
  const { database } = test.store.address;
  await second.command({ query: 'DROP TABLE ad_units_date_view SYNC' });
  await third.command({
    query: `CREATE OR REPLACE TABLE ${database}.campaigns_date AS ${local}.campaigns_date
            ENGINE = Distributed('${cluster.name}', '${local}', 'campaigns_date', cityHash64(account_id))`,
  });
  const astray = connect(addressOf(cluster.nodes[2] ?? test.address, database));
  const settings = { timezone: 'Europe/Vienna', cluster: cluster.name, shards: 3 };
  await writeSettings(astray, { ...settings, timezone: 'UTC' });
  await third.command({ query: `INSERT INTO ${database}.placements (account_id, shards) VALUES ('a', [2])` });
  expect(await checkSchema(test.store, catalog)).toEqual([
    expect.stringMatching(/^127\.0\.0\.1:\d+: ad_units_date_view: the view is missing/),
    expect.stringMatching(/^127\.0\.0\.1:\d+: settings: .*UTC.*, but .*Europe\/Vienna/),
    expect.stringMatching(
      /^127\.0\.0\.1:\d+: campaigns_date: the engine is Distributed.*cityHash64\(account_id\)\)/,
    ),
    expect.stringMatching(/^127\.0\.0\.1:\d+: placements: differs from the node of CLICKHOUSE_URL/),
  ]);
  await writeSettings(astray, settings).finally(() => astray.close());
});

it('a store of a single node is not turned into one of a cluster, nor the other way round', async () => {
  const { database } = test.store.address;
  await expect(migrate(test.store.address)).rejects.toThrow(
    `database ${database} is on the cluster adtally: set CLICKHOUSE_CLUSTER=adtally`,
  );
  const single = { ...test.store.address, database: `${database}_single` };
  await migrate(single);
  await expect(migrateCluster(single, cluster.name)).rejects.toThrow(
    `database ${single.database} is on a single node: use another CLICKHOUSE_DATABASE for the cluster`,
  );
  await test.store.command({ query: `DROP DATABASE ${single.database} SYNC` });
});

it('a wrong cluster is refused with one line that says which there are', async () => {
  const env = { ...environmentOf(test.address), CLICKHOUSE_CLUSTER: 'other' };
  const other = await commands.run(['migrate'], env);
  expect(other.code).toBe(1);
  expect(other.stderr).toMatch(/^error: http\S+ has no cluster other, only: adtally/);
  const alone = await commands.run(['migrate'], { CLICKHOUSE_CLUSTER: 'adtally' });
  expect([alone.code, alone.stderr]).toEqual([
    2,
    "error: CLICKHOUSE_CLUSTER=adtally: needs CLICKHOUSE_URL, the address of one of the cluster's nodes\n",
  ]);
});

it('a later migration changes and drops tables of every node, and those that spread their rows', async () => {
  const newer = makeNewer();
  try {
    const env = { ...environmentOf(test.address), CLICKHOUSE_CLUSTER: cluster.name };
    const { code, stderr } = await adtally(newer, ['migrate'], env).ended;
    expect([code, stderr]).toEqual([0, 'applied 9000_made_up\n']);
  } finally {
    rmSync(dirname(dirname(newer)), { recursive: true, maxRetries: 20 });
  }
  const { database } = test.store.address;
  for (const server of cluster.nodes) {
    const node = connect(addressOf(server, database));
    const columns = await select<{ column: string }>(
      node,
      `SELECT concat(database, '.', table, '.', name) AS column FROM system.columns
       WHERE startsWith(database, {database:String}) AND (name IN ('made_up', 'more') OR table = 'made_in_vain')
       ORDER BY column`,
      { database },
    );
    await node.close();
    expect(columns.map(({ column }) => column)).toEqual([
      `${database}.confirmations.made_up`,
      `${database}.made_up.more`,
      `${database}.tokens.made_up`,
      `${database}_shard.confirmations.made_up`,
      `${database}_shard.made_up.more`,
    ]);
  }
});

describe('a cluster of several replicas', () => {
  // One server that is named twice, with a coordination service in its own memory: enough to create the tables.
  const replicas = useCluster(1, {
    replicas: 2,
    more: '<zookeeper><implementation>testkeeper</implementation></zookeeper><macros><shard>1</shard><replica>1</replica></macros>',
  });

  it('gets replicated tables from the same files', async () => {
    const [node] = replicas.nodes;
    if (!node) throw new Error('there is a node');
    const address = addressOf(node, 'replicated');
    await migrateCluster(address, replicas.name);
    const store = connect(address);
    try {
      const engines = await select<{ table: string; path: string; engine: string }>(
        store,
        `SELECT concat(database, '.', name) AS table, splitByChar(char(39), engine_full)[2] AS path, engine
         FROM system.tables WHERE startsWith(database, 'replicated') AND engine LIKE '%MergeTree' ORDER BY table`,
      );
      // Each node has these two of its own: what it was made by, and what it has applied.
      expect(
        engines.flatMap(({ engine, table }) => (engine.startsWith('Replicated') ? [] : [table])),
      ).toEqual(['replicated.migrations', 'replicated.settings']);
      const paths = new Map(engines.map(({ table, path }) => [table, path]));
      expect(paths.get('replicated_shard.events')).toBe('/clickhouse/tables/replicated_shard/{shard}/events');
      expect(paths.get('replicated.tokens')).toBe('/clickhouse/tables/replicated_shard/everywhere/tokens');
    } finally {
      await store.close();
    }
  });
});
