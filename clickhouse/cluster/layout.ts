import { type Address, connect, type Store, select } from '../client.ts';
import { hashedOver, type Placing } from './sharding-key.ts';

/**
 * How a store lies on a cluster: `local` holds the tables and views of each node, and the database of the store
 * holds Distributed tables of the same names and, whole on every node, names, tokens and placements.
 */
export interface Layout {
  readonly cluster: string;
  /** The database of the local tables. */
  readonly local: string;
  readonly nodes: readonly Node[];
  /** Whether a shard has several nodes, which copy what one of them was told. */
  readonly replicated: boolean;
  readonly placing: Placing;
}

export interface Node {
  /** From 1, as in `system.clusters`. */
  readonly shard: number;
  readonly replica: number;
  /** Host and port of the native protocol. */
  readonly host: string;
  readonly weight: number;
}

/** The cluster is not what adtally needs; the message says what to do. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
}

const known = new WeakMap<Store, Promise<Layout | undefined>>();

/** The layout of a store; undefined when it is a single node's. Looked up once for each client. */
export function layoutOf(store: Store): Promise<Layout | undefined> {
  const found = known.get(store) ?? findLayout(store);
  known.set(store, found);
  found.catch(() => known.delete(store));
  return found;
}

async function findLayout(store: Store): Promise<Layout | undefined> {
  const [events] = await select<{ cluster: string; local: string; key: string }>(
    store,
    `SELECT extract(engine_full, '^Distributed\\\\(\\'([^\\']+)') AS cluster,
            extract(engine_full, '^Distributed\\\\(\\'[^\\']+\\', \\'([^\\']+)') AS local, engine_full AS key
     FROM system.tables WHERE database = currentDatabase() AND name = 'events' AND engine = 'Distributed'`,
  );
  if (!events) return undefined;
  const { cluster, local, key } = events;
  const nodes = await nodesOf(store, cluster);
  const shards = hashedOver(key);
  if (shards === undefined)
    throw new ClusterError(`${store.address.database}.events does not spread accounts`);
  return layout({ cluster, local, nodes, placing: { database: store.address.database, shards } });
}

export function layout(parts: Omit<Layout, 'replicated'>): Layout {
  return { ...parts, replicated: parts.nodes.some(({ replica }) => replica > 1) };
}

/** How many shards a cluster has. */
export function lastShard(nodes: readonly Node[]): number {
  return Math.max(...nodes.map(({ shard }) => shard));
}

/** The nodes of a cluster, by shard. @throws {ClusterError} when the server knows no cluster of that name */
export async function nodesOf(store: Store, cluster: string): Promise<Node[]> {
  const nodes = await select<Node>(
    store,
    `SELECT shard_num AS shard, replica_num AS replica, shard_weight AS weight,
            concat(if(position(host_name, ':') > 0, concat('[', host_name, ']'), host_name), ':', toString(port)) AS host
     FROM system.clusters WHERE cluster = {cluster:String} ORDER BY shard_num, replica_num`,
    { cluster },
  );
  if (nodes.length > 0) return nodes;
  const others = await select<{ cluster: string }>(
    store,
    'SELECT DISTINCT cluster FROM system.clusters ORDER BY 1',
  );
  throw new ClusterError(
    `${store.address.url} has no cluster ${cluster}: it knows ${others.map((other) => other.cluster).join(', ') || 'none'}; remote_servers of its configuration names them`,
  );
}

/** A client for one node, which has to answer HTTP under the host name that the cluster has for it. */
async function openNode(store: Store, node: Node, database: string): Promise<Store> {
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
  nodes: readonly Node[],
  database: string,
  work: (node: Store, place: Node) => Promise<T>,
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

async function openFirst(store: Store, replicas: readonly Node[], database: string): Promise<Store> {
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
export async function everywhere(store: Store, table: string): Promise<string> {
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
  nodes: readonly Node[],
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
