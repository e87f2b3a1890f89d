import { setTimeout as delay } from 'node:timers/promises';
import { type Address, closing, connect, type Store } from '../client.ts';
import { type ClusterNode, createLayout, nodesOf, shardCount } from '../cluster/layout.ts';
import { onNodes, remoteTable } from '../cluster/on-nodes.ts';
import { readSettings } from '../settings.ts';
import { layoutFollowsWithinMs } from '../timings.ts';
import { type MigrateOptions, migrate } from './migrate.ts';
import { tablesOnEveryNode } from './migration-files.ts';

/**
 * Migrates every node of a cluster to this version, one after the other, and returns the names of the migrations
 * applied. All nodes have to answer. A node that was added to the cluster gets the tables and, from the other nodes, a
 * copy of what every node has; no account is stored there until `placeAccount` or `growCluster` says so.
 * @throws naming what is wrong with the cluster, or the node whose migration failed
 */
export async function migrateCluster(
  address: Address,
  cluster: string,
  reportTimezone?: string,
  options: MigrateOptions = {},
): Promise<string[]> {
  return closing(connect({ ...address, database: 'default' }), async (server) => {
    const nodes = await nodesOf(server, cluster);
    requireEvenShards(cluster, nodes);
    const { database } = address;
    const stored = await onNodes(server, nodes, database, readSettings);
    const known = stored.find((settings) => settings);
    const timezone = reportTimezone ?? known?.timezone;
    const { shards, firstShards } = known ?? { shards: shardCount(nodes), firstShards: shardCount(nodes) };
    const wanted = createLayout({ cluster, nodes, sharding: { database, shards, firstShards } });
    const applied = await onNodes(server, nodes, database, (node, { host }) =>
      migrate(node.address, timezone, options, wanted).catch((cause: unknown) => {
        throw new Error(`${host}: ${cause instanceof Error ? cause.message : cause}`, { cause });
      }),
    );
    if (known && nodes.length > 1) {
      // Until then a process may write a token or a name to the other nodes alone.
      if (stored.includes(undefined)) await delay(layoutFollowsWithinMs);
      await onNodes(server, nodes, database, (node, self) =>
        copyWholeTables(
          node,
          nodes.filter((other) => other !== self),
        ),
      );
    }
    return [...new Set(applied.flat())];
  });
}

function requireEvenShards(cluster: string, nodes: readonly ClusterNode[]): void {
  const heavy = nodes.find(({ weight }) => weight !== 1);
  if (heavy) {
    throw new Error(
      `${heavy.host} of cluster ${cluster} has weight ${heavy.weight}: every shard needs weight 1, because adtally assigns accounts by shard number`,
    );
  }
}

/**
 * Fills those of the tables that every node has in full which have fewer rows than another node's: of a node that was just
 * added, or whose filling was interrupted. What the node has already counts once, by its version. Replicas fetch the rows
 * themselves; then there is nothing left to copy.
 */
async function copyWholeTables(node: Store, others: readonly ClusterNode[]): Promise<void> {
  const { address } = node;
  for (const table of await tablesOnEveryNode()) {
    const theirs = remoteTable(address, others, address.database, table, ',');
    await node.command({
      query: `INSERT INTO ${table} SELECT * FROM ${theirs}
              WHERE (SELECT count() FROM ${table} FINAL)
                < (SELECT max(rows) FROM (SELECT count() AS rows FROM ${theirs} FINAL GROUP BY shardNum()))`,
    });
  }
  await node.command({ query: 'SYSTEM RELOAD DICTIONARY placement' });
}
