import { setTimeout as delay } from 'node:timers/promises';
import { changesTable } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { requireNoChunkInDoubt } from '../chunks-in-doubt.ts';
import { type Store, select, selectOne } from '../client.ts';
import { type Layout, layoutOf, shardCount } from '../cluster/layout.ts';
import { insertTargetOnAllNodes, onNodes, reloadDictionary } from '../cluster/on-nodes.ts';
import { homeShardExpression } from '../cluster/sharding-key.ts';
import { distributedTable, shardingKeys } from '../migrate/migration-files.ts';
import { rollups } from '../rollups.ts';
import { requireSettings, writeSettings } from '../settings.ts';
import { layoutFollowsWithinMs, placementsFollowWithinMs } from '../timings.ts';

export interface Placement {
  readonly account: string;
  /** Numbers of the shards, from 1. */
  readonly shards: readonly number[];
}

/**
 * Sends future events of an account to these shards, split by campaign or ad unit if there are several. Events that
 * are already loaded stay where they are; reports of the account then read all shards, as they do for an account on
 * several shards. Safe to repeat. The caller makes sure that no load runs at the same time.
 * @param requireAlone throws where a load may run by now, of which a part would go to one shard and its repetition to another
 * @returns whether reports of the account read all shards
 * @throws when there is no such shard, or when a chunk is unsettled: sent again, it would go elsewhere
 */
export async function placeAccount(
  store: Store,
  catalog: Catalog,
  { account, shards }: Placement,
  requireAlone?: () => void,
): Promise<boolean> {
  const layout = await requireCluster(store);
  const maxShard = shardCount(layout.nodes);
  const unknown = shards.find((shard) => shard < 1 || shard > maxShard);
  if (unknown !== undefined)
    throw new Error(`there is no shard ${unknown}: ${layout.cluster} has shards 1 to ${maxShard}`);
  await requireNoChunkInDoubt(store, 'place', wasSent);
  const now = await selectOne<{ home: number; shards: number[]; rows: number }>(
    store,
    `SELECT toUInt32(${homeShardExpression('{account:String}', layout.sharding)}) AS home,
            (SELECT groupArrayArray(shards) FROM placements FINAL WHERE account_id = {account:String}) AS shards,
            toUInt32((SELECT count() FROM (${accountsWithRows(catalog, 'WHERE account_id = {account:String}')}))) AS rows`,
    { account },
  );
  const readAll = shards.length > 1 || now.rows > 0;
  if (readAll) {
    await recordPlacement(store, account, now.shards.length > 0 ? now.shards : [now.home], true);
    await delay(placementsFollowWithinMs);
  }
  requireAlone?.();
  await recordPlacement(store, account, shards, readAll);
  await reloadDictionary(store, 'placement');
  return readAll;
}

/**
 * Spreads new accounts over every shard of a cluster that has grown; accounts with rows stay where they are. If
 * interrupted, it has to be repeated before the next load; `checkSchema` reports that. The caller makes sure that no
 * load runs at the same time.
 * @param requireAlone as `placeAccount` has it
 * @returns the number of shards accounts were hashed over before and are now, and how many accounts were pinned
 */
export async function growCluster(
  store: Store,
  catalog: Catalog,
  requireAlone?: () => void,
): Promise<{ from: number; to: number; accounts: number }> {
  const layout = await requireCluster(store);
  const { sharding } = layout;
  const settings = await requireSettings(store);
  const [from, to] = [sharding.shards, shardCount(layout.nodes)];
  if (to < from) throw new Error(`${layout.cluster} has ${to} shards, but accounts are spread over ${from}`);
  await requireNoChunkInDoubt(store, 'grow', wasSent);
  const target = await insertTargetOnAllNodes(store, 'placements');
  // Accounts whose shard would change; an account with a placement keeps it.
  const moving = `SELECT account_id FROM (${accountsWithRows(catalog)})
    WHERE ${homeShardExpression('account_id', layout.sharding)} != ${homeShardExpression('account_id', { ...sharding, shards: to })}`;
  const [count] = await select<{ accounts: number }>(
    store,
    `SELECT toUInt32(count()) AS accounts FROM (${moving})`,
  );
  await store.command({
    query: `INSERT INTO ${target} (account_id, shards, read_all)
            SELECT account_id, [${homeShardExpression('account_id', layout.sharding)}], false FROM (${moving})`,
  });
  await reloadDictionary(store, 'placement');
  const keys = await shardingKeys({ ...sharding, shards: to });
  // Not between nodes: where some have the new keys and others the old ones, loads and reports go wrong.
  requireAlone?.();
  await onNodes(store, layout.nodes, store.address.database, async (node) => {
    for (const [table, key] of keys) {
      await node.command({ query: distributedTable(table, key, layout) });
    }
    // Last, so that a run that is killed does all of it once more.
    await writeSettings(node, { ...settings, shards: to });
  });
  // What runs on has heard of the shards before it takes back, or revokes, what may be there.
  await delay(layoutFollowsWithinMs);
  return { from, to, accounts: count?.accounts ?? 0 };
}

function accountsWithRows(catalog: Catalog, where = ''): string {
  const tables = [
    ...rollups(catalog)
      .filter(({ owner }) => owner)
      .map(({ table }) => table),
    // Of an account whose events were all taken back they alone have rows.
    ...Object.keys(catalog.families).map(changesTable),
    'confirmations',
    'closes',
  ];
  return tables
    .map((table) => `SELECT account_id FROM ${table} ${where} GROUP BY account_id`)
    .join(' UNION DISTINCT ');
}

async function recordPlacement(
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
  if (!layout) throw new Error(`database ${store.address.database} is on a single node, not on a cluster`);
  return layout;
}

/** Sent to another shard, its events would be counted twice. */
const wasSent =
  "toUInt64(c.sent_at) > 0 AND c.load_id NOT IN (SELECT load_id FROM loads FINAL WHERE state = 'unloaded')";
