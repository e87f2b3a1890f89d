import { type Address, closing, connect, impatient, type Store, select } from '../client.ts';
import { quoted } from '../quoted.ts';
import { isOfConnection, isTransient } from '../retry.ts';
import { type ClusterNode, type Layout, layoutOf } from './layout.ts';

/** A client for one node, which must answer HTTP under the host name given in the cluster's configuration. */
async function openNode(store: Store, node: ClusterNode, database: string): Promise<Store> {
  const { address } = store;
  const protocol = new URL(address.url).protocol;
  const [found] = await select<{ port: number }>(
    store,
    `SELECT getServerPort('${protocol === 'https:' ? 'https_port' : 'http_port'}') AS port
     FROM ${remoteTable(address, [node], 'system', 'one')}`,
  );
  const host = node.host.replace(/:\d+$/, '');
  return connect({ ...address, url: `${protocol}//${host}:${found?.port}`, database });
}

/** Runs the same work on every node, one after the other. @throws what the first failing node throws */
export async function onNodes<T>(
  store: Store,
  nodes: readonly ClusterNode[],
  database: string,
  work: (store: Store, node: ClusterNode) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  for (const node of nodes) {
    results.push(await closing(await openNode(store, node, database), (client) => work(client, node)));
  }
  return results;
}

/** Runs the same work on every server: the single node, or all nodes of the cluster. */
export async function onServers(store: Store, work: (server: Store) => Promise<void>): Promise<void> {
  const layout = await layoutOf(store);
  if (layout) await onNodes(store, layout.nodes, layout.local, work);
  else await work(store);
}

/** The same, without the nodes that cannot be reached. */
export async function onServersInReach(store: Store, work: (server: Store) => Promise<void>): Promise<void> {
  const layout = await layoutOf(store);
  if (!layout) return work(store);
  for (const node of layout.nodes) {
    const client = await openNode(store, node, layout.local).catch((error: Error) => {
      if (!isTransient(error)) throw error;
      return undefined;
    });
    if (client) await closing(client, work);
  }
}

/** One part of the data: the whole store of a single node, or one shard of a cluster. */
export interface Shard {
  /** Connected to the database that holds the tables and views. */
  readonly store: Store;
  /** Absent for a single node. */
  readonly part?: { readonly number: number; readonly layout: Layout };
}

/** Runs the same work on every shard, on the first of its nodes that answers; on a single node, there. */
export async function onShards<T>(store: Store, work: (shard: Shard) => Promise<T>): Promise<T[]> {
  const layout = await layoutOf(store);
  if (!layout) return [await work({ store })];
  const results: T[] = [];
  for (const number of new Set(layout.nodes.map(({ shard }) => shard))) {
    const replicas = layout.nodes.filter(({ shard }) => shard === number);
    const first = await openFirst(store, replicas, layout.local);
    results.push(await closing(first, (node) => work({ store: node, part: { number, layout } })));
  }
  return results;
}

/**
 * The shards without a node that the asked server can reach, in words; empty on a single node.
 * @throws where the asked server itself is away
 */
export async function missingShards(store: Store): Promise<string[]> {
  const layout = await layoutOf(store);
  const missing: string[] = [];
  for (const number of new Set(layout?.nodes.map(({ shard }) => shard))) {
    const replicas = layout?.nodes.filter(({ shard }) => shard === number) ?? [];
    try {
      const query = `SELECT 1 FROM ${remoteTable(store.address, replicas, 'system', 'one')}`;
      // Twice: a shard that is there may miss one connection.
      await select(store, query, {}, { ...impatient, connections_with_failover_max_tries: '2' });
    } catch (error) {
      // A broken connection to the asked server says nothing of the shards.
      if (!(error instanceof Error && isTransient(error)) || isOfConnection(error)) throw error;
      missing.push(`shard ${number} (${replicas.map(({ host }) => host).join(', ')})`);
    }
  }
  return missing;
}

async function openFirst(store: Store, replicas: readonly ClusterNode[], database: string): Promise<Store> {
  let failure: unknown;
  for (const replica of replicas) {
    try {
      return await openNode(store, replica, database);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/**
 * The target of an INSERT into a table with a full copy on every node. With replicas it is the table, which
 * they replicate; without, it is a table function that writes to all nodes and fails when one of them is down.
 */
export async function insertTargetOnAllNodes(store: Store, table: string): Promise<string> {
  const layout = await layoutOf(store);
  if (!layout || layout.replicated) return table;
  const { address } = store;
  return `FUNCTION ${remoteTable(address, layout.nodes, address.database, table)}`;
}

/**
 * A table with a full copy on every node, to read all that any node has of it: a row is there once for each
 * node, and a node that is down is an error. With replicas it is the table.
 */
export async function everyCopyOf(store: Store, table: string): Promise<string> {
  const layout = await layoutOf(store);
  if (!layout || layout.replicated) return table;
  const { address } = store;
  return remoteTable(address, layout.nodes, address.database, table, ',');
}

/** The copy of such a table on each node, by itself; none where there is one table, or replicas keep it the same. */
export async function nodeTables(store: Store, table: string): Promise<{ host: string; table: string }[]> {
  const layout = await layoutOf(store);
  if (!layout || layout.replicated) return [];
  const { address } = store;
  return layout.nodes.map((node) => ({
    host: node.host,
    table: remoteTable(address, [node], address.database, table),
  }));
}

/** Reloads a dictionary on every node. */
export async function reloadDictionary(store: Store, dictionary: string): Promise<void> {
  const query = `SYSTEM RELOAD DICTIONARY ${dictionary}`;
  const layout = await layoutOf(store);
  if (!layout) await store.command({ query });
  else await onNodes(store, layout.nodes, store.address.database, (node) => node.command({ query }));
}

/**
 * A table function for a table that each of these nodes has a copy of.
 * @param separator `|`: the first node that is up is read and all are written; `,`: all are read
 */
export function remoteTable(
  address: Address,
  nodes: readonly ClusterNode[],
  database: string,
  table: string,
  separator: '|' | ',' = '|',
): string {
  const name = address.url.startsWith('https:') ? 'remoteSecure' : 'remote';
  const hosts = nodes.map(({ host }) => host).join(separator);
  return `${name}(${[hosts, database, table, address.user, address.password].map(quoted).join(', ')})`;
}
