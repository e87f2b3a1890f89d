import { type Store, select } from '../client.ts';
import { hashedShardCount, type Sharding } from './sharding-key.ts';

/**
 * How a store lies on a cluster: `local` holds the tables and views of each node, and the database of the store
 * holds Distributed tables of the same names and, whole on every node, names, tokens and placements.
 */
export interface Layout {
  readonly cluster: string;
  /** The database of the local tables. */
  readonly local: string;
  readonly nodes: readonly ClusterNode[];
  /** Whether a shard has several nodes, which copy what one of them was told. */
  readonly replicated: boolean;
  readonly sharding: Sharding;
}

export interface ClusterNode {
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
  const shards = hashedShardCount(key);
  if (shards === undefined)
    throw new ClusterError(`${store.address.database}.events does not spread accounts`);
  return createLayout({ cluster, local, nodes, sharding: { database: store.address.database, shards } });
}

export function createLayout(parts: Omit<Layout, 'replicated'>): Layout {
  return { ...parts, replicated: parts.nodes.some(({ replica }) => replica > 1) };
}

/** How many shards a cluster has. */
export function shardCount(nodes: readonly ClusterNode[]): number {
  return Math.max(...nodes.map(({ shard }) => shard));
}

/** The nodes of a cluster, by shard. @throws {ClusterError} when the server knows no cluster of that name */
export async function nodesOf(store: Store, cluster: string): Promise<ClusterNode[]> {
  const nodes = await select<ClusterNode>(
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
