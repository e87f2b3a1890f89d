import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrate, pendingMigrations } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { growCluster, placeAccount } from '../../clickhouse/placement/place-account.ts';
import { readSettings, writeSettings } from '../../clickhouse/settings.ts';
import { requestLimits } from '../../src/accounts/own-settings.ts';
import { hashToken, listTokens, newToken, revokeTokens } from '../../src/accounts/tokens.ts';
import { askedShards, events, homes, year } from '../support/accounts.ts';
import { useCluster } from '../support/cluster.ts';
import { load } from '../support/events.ts';
import { adtally, makeNewer } from '../support/killed-commands.ts';
import { answer } from '../support/oracle.ts';
import { environmentOf, useCommands } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const test = useClusterStore(cluster, 'Europe/Vienna');
const service = useService(test);
const commands = useCommands();
const accounts = Array.from({ length: 12 }, (_, n) => `account-${n}`);
beforeAll(() => load(test.store, events(accounts, 1_200), 50_000));

const statusWith = async (token: string) =>
  (await service.post('/v1/campaigns', 'usual', {}, { authorization: `Bearer ${token}` })).status;

it('a row that only one node has, from a clock that is ahead, is replaced on all nodes, whichever is asked', async () => {
  const [first, second] = cluster.nodes.map((node) => connect(addressOf(node, test.address.database)));
  if (!first || !second) throw new Error('there are three nodes');
  try {
    const usual = await service.token('usual');
    const token = newToken();
    await second.command({
      query: `INSERT INTO tokens (id, account_id, hash, label, created_at, version)
              SELECT 'ahead', 'ahead', {hash:String}, '', now64(3), now64(6) + INTERVAL 10 MINUTE`,
      query_params: { hash: hashToken(token) },
    });
    await second.command({
      query:
        "INSERT INTO account_limits (account_id, requests, version) SELECT 'ahead', 7, now64(6) + INTERVAL 10 MINUTE",
    });
    await expect.poll(() => statusWith(token), { timeout: 5_000 }).toBe(400);
    expect(await statusWith(usual)).toBe(400);
    expect(await revokeTokens(first, { account: 'ahead' })).toEqual(['ahead']);
    expect(await revokeTokens(first, { account: 'usual' })).toHaveLength(1);
    await requestLimits.set(first, 'ahead', 9);
    for (const node of [first, second]) {
      expect((await listTokens(node)).filter(({ revoked }) => revoked === null)).toEqual([]);
      expect(await requestLimits.list(node)).toMatchObject([{ account: 'ahead', value: 9 }]);
    }
    const statuses = () => Promise.all([token, usual].map(statusWith));
    await expect.poll(statuses, { timeout: 5_000 }).toEqual([401, 401]);
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});

it('a report asks the shard of its account and no other', async () => {
  const home = await homes(test.store);
  expect(new Set(home.values())).toEqual(new Set([1, 2, 3]));
  for (const account of accounts) {
    await answer(service, '/v1/campaigns/breakdowns/device', account, year);
    expect(await askedShards(test, account, 'campaigns_device_date'), account).toEqual([[home.get(account)]]);
  }
});

it('an account whose events were all taken back is asked for on all shards', async () => {
  await test.store.command({
    query:
      "INSERT INTO ad_units_changes (account_id, day, changed_at) VALUES ('emptied', '2026-01-01', now64(6))",
  });
  expect(await placeAccount(test.store, catalog, { account: 'emptied', shards: [1] })).toBe(true);
  expect(await placeAccount(test.store, catalog, { account: 'unknown', shards: [1] })).toBe(false);
});

it('places nothing while a chunk is in doubt, nor on a shard that is not there', async () => {
  const to = (shards: number[]) => placeAccount(test.store, catalog, { account: 'giant', shards });
  await expect(to([4])).rejects.toThrow('there is no shard 4: adtally has shards 1 to 3');
  await Promise.all(
    test.shards.map((shard) =>
      shard.command({
        query: 'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6) WHERE true',
        clickhouse_settings: { mutations_sync: '2' },
      }),
    ),
  );
  await expect(to([1])).rejects.toThrow(
    /load (\d{14}-\w+) was interrupted.*take it back with adtally unload \1; then place/,
  );
  await expect(growCluster(test.store, catalog)).rejects.toThrow(/was interrupted.*; then grow/);
});

it('verify names an account with rows where no report looks', async () => {
  await test.shards[0]?.command({
    query: `INSERT INTO campaigns_date (account_id, day, campaign_id)
            SELECT concat('lost-', toString(number)), '2027-01-01', 'c' FROM numbers(20)`,
  });
  const { differences } = await verifyRollups(test.store, catalog, { from: '2027-01-01', to: '2027-01-01' });
  const found = differences.filter(({ measure }) => measure === 'shard');
  expect(found.length).toBeGreaterThan(5);
  const [first] = found;
  expect(first).toMatchObject({ table: 'campaigns_date', day: '2027-01-01', rollup: '1' });
  const verified = await commands.run(
    ['verify', '--from', '2027-01-01', '--to', '2027-01-01'],
    environmentOf(test.store.address),
  );
  expect(verified.stderr).toContain(`adtally place ${first?.account} ${first?.events}, after which`);
});

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
  await second.command({ query: 'DROP TABLE load_chunks SYNC' });
  await second.command({ query: `ALTER TABLE ${database}.closes DROP COLUMN closed_at` });
  await third.command({
    query: `CREATE OR REPLACE TABLE ${database}.campaigns_date AS ${local}.campaigns_date
            ENGINE = Distributed('${cluster.name}', '${local}', 'campaigns_date', cityHash64(account_id))`,
  });
  const astray = connect(addressOf(cluster.nodes[2] ?? test.address, database));
  const settings = { timezone: 'Europe/Vienna', cluster: cluster.name, shards: 3, firstShards: 3 };
  await writeSettings(astray, { ...settings, timezone: 'UTC' });
  await third.command({ query: `INSERT INTO ${database}.placements (account_id, shards) VALUES ('a', [2])` });
  expect(await checkSchema(test.store, catalog)).toEqual([
    expect.stringMatching(/^127\.0\.0\.1:\d+: ad_units_date_view: the view is missing/),
    expect.stringMatching(/^127\.0\.0\.1:\d+: load_chunks: the table is missing$/),
    expect.stringMatching(/^127\.0\.0\.1:\d+: closes: column closed_at is missing$/),
    expect.stringMatching(/^127\.0\.0\.1:\d+: settings: .*UTC.*, but .*Europe\/Vienna/),
    expect.stringMatching(
      /^127\.0\.0\.1:\d+: campaigns_date: the engine is Distributed.*cityHash64\(account_id\)\)/,
    ),
    expect.stringMatching(/^127\.0\.0\.1:\d+: placements: differs from the node of CLICKHOUSE_URL/),
  ]);
  await astray.command({ query: 'DROP TABLE settings SYNC' });
  expect((await checkSchema(test.store, catalog)).filter((each) => each.includes(': settings: '))).toEqual([
    expect.stringMatching(/^127\.0\.0\.1:\d+: settings: the table is missing or empty, but .*Europe\/Vienna/),
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
