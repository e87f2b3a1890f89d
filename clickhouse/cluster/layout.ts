import { type Store, select } from '../client.ts';
import { requireSettings } from '../settings.ts';
import { layoutMaxAgeMs } from '../timings.ts';
import type { Sharding } from './sharding-key.ts';

/**
 * How a store is laid out on a cluster: database `local` holds the tables and views of each node. The database of
 * the store holds Distributed tables of the same names and a full copy of names, tokens and placements on every node.
 */
export interface Layout {
  readonly cluster: string;
  /** The database of the local tables. */
  readonly local: string;
  readonly nodes: readonly ClusterNode[];
  /** Whether a shard has several nodes, which replicate each other's writes. */
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

interface Known {
  readonly layout: Promise<Layout | undefined>;
  /** By `performance.now()`. */
  until: number;
}

const known = new WeakMap<Store, Known>();

/**
 * The layout of a store; undefined for a single node, which stays one. That of a cluster is at most `layoutMaxAgeMs` old,
 * because shards are added while processes run: ask for it where it is needed, and do not keep it.
 * @throws when the store has no settings
 */
export function layoutOf(store: Store): Promise<Layout | undefined> {
  const last = known.get(store);
  if (last && performance.now() < last.until) return last.layout;
  const asked: Known = { until: performance.now() + layoutMaxAgeMs, layout: findLayout(store) };
  known.set(store, asked);
  asked.layout.then(
    (layout) => {
      if (!layout) asked.until = Number.POSITIVE_INFINITY;
    },
    () => known.delete(store),
  );
  return asked.layout;
}

async function findLayout(store: Store): Promise<Layout | undefined> {
  const { cluster, shards, firstShards } = await requireSettings(store);
  if (!cluster) return undefined;
  const { database } = store.address;
  const nodes = await nodesOf(store, cluster);
  return createLayout({ cluster, nodes, sharding: { database, shards, firstShards } });
}

/** A layout; the rest of it follows from these. */
export function createLayout(parts: Pick<Layout, 'cluster' | 'nodes' | 'sharding'>): Layout {
  return {
    ...parts,
    local: localDatabase(parts.sharding.database),
    replicated: parts.nodes.some(({ replica }) => replica > 1),
  };
}

/** The database that holds the local tables of a cluster node. */
export function localDatabase(database: string): string {
  return `${database}_shard`;
}

/** The number of shards of a cluster. */
export function shardCount(nodes: readonly ClusterNode[]): number {
  return Math.max(...nodes.map(({ shard }) => shard));
}

/** The nodes of a cluster, ordered by shard. @throws when ClickHouse knows no cluster of that name */
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
  throw new Error(
    `${store.address.url} has no cluster ${cluster}, only: ${others.map((other) => other.cluster).join(', ') || 'none'}; clusters are defined under remote_servers in the ClickHouse configuration`,
  );
}
