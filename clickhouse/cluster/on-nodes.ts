import { type Address, connect, type Store, select } from '../client.ts';
import { type ClusterNode, type Layout, layoutOf } from './layout.ts';

/** A client for one node, which has to answer HTTP under the host name that the cluster has for it. */
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

/** Does the same on every node, one after the other. @throws what the first that fails throws, told which node it is */
export async function onNodes<T>(
  store: Store,
  nodes: readonly ClusterNode[],
  database: string,
  work: (node: Store, place: ClusterNode) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  for (const place of nodes) {
    const node = await openNode(store, place, database);
    try {
      results.push(await work(node, place));
    } finally {
      await node.close();
    }
  }
  return results;
}

/** Does the same on every server: the one of the store, or all nodes of its cluster. */
export async function onServers(store: Store, work: (server: Store) => Promise<void>): Promise<void> {
  const layout = await layoutOf(store);
  if (layout) await onNodes(store, layout.nodes, layout.local, work);
  else await work(store);
}

/** A place where tables and views lie: the store itself, or one node of each shard. */
export interface Shard {
  readonly store: Store;
  /** Absent in the store of a single node. */
  readonly part?: { readonly number: number; readonly layout: Layout };
}

/** Does the same where the tables and views lie: in the store itself, or on one live node of each shard. */
export async function onShards<T>(store: Store, work: (shard: Shard) => Promise<T>): Promise<T[]> {
  const layout = await layoutOf(store);
  if (!layout) return [await work({ store })];
  const results: T[] = [];
  for (const number of new Set(layout.nodes.map(({ shard }) => shard))) {
    const replicas = layout.nodes.filter(({ shard }) => shard === number);
    const node = await openFirst(store, replicas, layout.local);
    try {
      results.push(await work({ store: node, part: { number, layout } }));
    } finally {
      await node.close();
    }
  }
  return results;
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
 * What an INSERT into a table that is whole on every node names as its target. Replicas copy it to each other;
 * without them one statement writes it to all nodes, and fails when one of them is down.
 */
export async function insertTargetOnAllNodes(store: Store, table: string): Promise<string> {
  const layout = await layoutOf(store);
  if (!layout || layout.replicated) return table;
  const { address } = store;
  return `FUNCTION ${remoteTable(address, layout.nodes, address.database, table)}`;
}

/** Reloads a dictionary of the store's database, on every node. */
export async function reloadDictionary(store: Store, dictionary: string): Promise<void> {
  const query = `SYSTEM RELOAD DICTIONARY ${dictionary}`;
  const layout = await layoutOf(store);
  if (!layout) await store.command({ query });
  else await onNodes(store, layout.nodes, store.address.database, (node) => node.command({ query }));
}

/** A table of several nodes that hold the same, as a table function. */
export function remoteTable(
  address: Address,
  nodes: readonly ClusterNode[],
  database: string,
  table: string,
): string {
  const name = address.url.startsWith('https:') ? 'remoteSecure' : 'remote';
  const hosts = nodes.map(({ host }) => host).join('|');
  return `${name}(${[hosts, database, table, address.user, address.password].map(quoted).join(', ')})`;
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
