import { setTimeout as delay } from 'node:timers/promises';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../client.ts';
import { shardingKeys } from '../migrate/migration-files.ts';
import { rollups } from '../rollups.ts';
import { ClusterError, type Layout, layoutOf, shardCount } from './layout.ts';
import { insertTargetOnAllNodes, onNodes, reloadDictionary } from './on-nodes.ts';
import { shardingKey } from './sharding-key.ts';

/** By then every service asks all shards for an account that is said to lie on several. */
const servicesKnowMs = 6_000;

export interface Placement {
  readonly account: string;
  /** Numbers of the shards, from 1. */
  readonly shards: readonly number[];
  /** How long services may take to learn of it. */
  readonly servicesKnowMs?: number;
}

/**
 * Sends what is loaded of an account from now on to these shards, by campaign or ad unit where there are several.
 * What is loaded stays where it is: reports of the account then ask all shards, as they do when it lies on several.
 * Repeating it changes nothing. The caller sees to it that nothing is loaded meanwhile.
 * @returns whether reports of the account ask all shards
 * @throws {ClusterError} when there is no such shard, or when a chunk is in doubt: sent again it would go elsewhere
 */
export async function placeAccount(store: Store, catalog: Catalog, options: Placement): Promise<boolean> {
  const { account, shards } = options;
  const layout = await requireCluster(store);
  const most = shardCount(layout.nodes);
  const wrong = shards.find((shard) => shard < 1 || shard > most);
  if (wrong !== undefined)
    throw new ClusterError(`there is no shard ${wrong}: ${layout.cluster} has 1 to ${most}`);
  await requireNoUnsettledChunk(store);
  const [now] = await select<{ home: number; shards: number[]; rows: number }>(
    store,
    `SELECT toUInt32(${homeShardExpression('{account:String}', layout)}) AS home,
            (SELECT groupArrayArray(shards) FROM placements FINAL WHERE account_id = {account:String}) AS shards,
            toUInt32((SELECT count() FROM (${accountsWithRows(catalog, 'WHERE account_id = {account:String}')}))) AS rows`,
    { account },
  );
  if (!now) throw new Error('the store did not tell where the account lies');
  const readAll = shards.length > 1 || now.rows > 0;
  if (readAll) {
    await record(store, account, now.shards.length > 0 ? now.shards : [now.home], true);
    await delay(options.servicesKnowMs ?? servicesKnowMs);
  }
  await record(store, account, shards, readAll);
  await reloadDictionary(store, 'placement');
  return readAll;
}

/**
 * Lets accounts without rows use every shard of a cluster that has grown; accounts with rows stay where they are.
 * Interrupted, it has to be repeated before anything is loaded: `check` says so. The caller sees to it that nothing
 * is loaded meanwhile.
 * @returns how many shards accounts were hashed over before and are now, and how many accounts had to be noted
 */
export async function growCluster(
  store: Store,
  catalog: Catalog,
): Promise<{ from: number; to: number; accounts: number }> {
  const layout = await requireCluster(store);
  const { sharding } = layout;
  const [from, to] = [sharding.shards, shardCount(layout.nodes)];
  if (to < from) throw new ClusterError(`${layout.cluster} has ${to} shards, accounts lie on ${from}`);
  await requireNoUnsettledChunk(store);
  const target = await insertTargetOnAllNodes(store, 'placements');
  // Those whose shard would change; one that was placed before keeps its place.
  const moving = `SELECT account_id FROM (${accountsWithRows(catalog)})
    WHERE ${homeShardExpression('account_id', layout)} != ${homeShardExpression('account_id', { sharding: { ...sharding, shards: to } })}`;
  const [count] = await select<{ accounts: number }>(
    store,
    `SELECT toUInt32(count()) AS accounts FROM (${moving})`,
  );
  await store.command({
    query: `INSERT INTO ${target} (account_id, shards, read_all)
            SELECT account_id, [${homeShardExpression('account_id', layout)}], false FROM (${moving})`,
  });
  await reloadDictionary(store, 'placement');
  const keys = await shardingKeys({ ...sharding, shards: to });
  await onNodes(store, layout.nodes, store.address.database, async (node) => {
    for (const [table, key] of keys) {
      await node.command({
        query: `CREATE OR REPLACE TABLE ${table} AS ${layout.local}.${table}
                ENGINE = Distributed('${layout.cluster}', '${layout.local}', '${table}', ${key})`,
      });
    }
  });
  return { from, to, accounts: count?.accounts ?? 0 };
}

/** The number of the shard on which reports look for an account. */
function homeShardExpression(account: string, { sharding }: Pick<Layout, 'sharding'>): string {
  return `(1 + ${shardingKey('account', sharding).replaceAll('account_id', account)})`;
}

function accountsWithRows(catalog: Catalog, where = ''): string {
  const tables = [
    ...rollups(catalog)
      .filter(({ owner }) => owner)
      .map(({ table }) => table),
    'confirmations',
  ];
  return tables
    .map((table) => `SELECT account_id FROM ${table} ${where} GROUP BY account_id`)
    .join(' UNION DISTINCT ');
}

async function record(
  store: Store,
  account: string,
  shards: readonly number[],
  readAll: boolean,
): Promise<void> {
  await store.command({
    query: `INSERT INTO ${await insertTargetOnAllNodes(store, 'placements')} (account_id, shards, read_all)
            SELECT {account:String}, {shards:Array(UInt16)}, {readAll:Bool}`,
    query_params: { account, shards, readAll },
  });
}

async function requireCluster(store: Store): Promise<Layout> {
  const layout = await layoutOf(store);
  if (!layout) throw new ClusterError(`database ${store.address.database} lies on a single node`);
  return layout;
}

async function requireNoUnsettledChunk(store: Store): Promise<void> {
  const [found] = await select<{ chunk: string; load: string; file: string }>(
    store,
    `SELECT c.chunk AS chunk, any(c.load_id) AS load, any(l.file) AS file
     FROM load_chunks AS c LEFT JOIN loads AS l ON l.load_id = c.load_id
     GROUP BY c.chunk HAVING toUInt64(max(c.loaded_at)) = 0 AND toUInt64(max(c.sent_at)) > 0 LIMIT 1`,
  );
  if (!found) return;
  throw new ClusterError(
    `load ${found.load} was cut off: it is not known whether all of chunk ${found.chunk.slice(0, 12)} of ${found.file} arrived. Load the file again first, which completes it: sent elsewhere its events would be counted twice.`,
  );
}
