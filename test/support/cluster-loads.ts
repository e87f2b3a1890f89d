import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import type { Cluster } from '../../clickhouse/embedded/local-cluster.ts';
import { useCommandRunners } from './command-runners.ts';
import { type EventLine, event } from './events.ts';
import { type Commands, type Ended, environmentOf, useCommands } from './process.ts';
import { addressOf, type TestStore } from './store.ts';

export interface ClusterLoads {
  readonly commands: Commands;
  /** Clients of all nodes. */
  readonly nodes: readonly Store[];
  readonly folder: string;
  /** The client of a node, from 1 on. */
  node(number: number): Store;
  /** Runs `adtally` on a node. */
  adtally(number: number, ...args: string[]): Promise<Ended>;
  /** What the store counts of events whose ids, and of accounts whose names, begin so. */
  total(prefix: string): Promise<{ events: number; campaigns: number; ad_units: number } | undefined>;
  expectVerified(): Promise<void>;
  /** On every shard. */
  mutate(query: string): Promise<unknown>;
}

export function useClusterLoads(cluster: Cluster, test: TestStore): ClusterLoads {
  const commands = useCommands();
  const run = useCommandRunners();
  let nodes: Store[];
  let folder: string;
  beforeAll(async () => {
    nodes = cluster.nodes.map((node) => connect(addressOf(node, test.store.address.database)));
    folder = await mkdtemp(join(tmpdir(), 'adtally-cluster-loads-'));
  });
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.close()));
    await rm(folder, { recursive: true, force: true });
  });

  const node = (number: number): Store => nodes[number - 1] ?? test.store;
  const adtally = (number: number, ...args: string[]) => {
    return run(args, environmentOf(node(number).address));
  };
  const total = async (prefix: string) => {
    const [row] = await select<{ events: number; campaigns: number; ad_units: number }>(
      test.store,
      `SELECT toUInt32((SELECT count() FROM events WHERE startsWith(event_id, {prefix:String}))) AS events,
            toUInt32((SELECT sum(r.impressions) FROM campaigns_date AS r WHERE startsWith(account_id, {prefix:String}))) AS campaigns,
            toUInt32((SELECT sum(r.impressions) FROM ad_units_date AS r WHERE startsWith(account_id, {prefix:String}))) AS ad_units`,
      { prefix },
    );
    return row;
  };
  const expectVerified = async () =>
    expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
  const mutate = (query: string) =>
    Promise.all(
      test.shards.map((shard) => shard.command({ query, clickhouse_settings: { mutations_sync: '2' } })),
    );
  return {
    commands,
    get nodes() {
      return nodes;
    },
    get folder() {
      return folder;
    },
    node,
    adtally,
    total,
    expectVerified,
    mutate,
  };
}

/** Impressions of thirty advertisers and thirty publishers, whose ids and whose events' begin alike. */
export function impressions(prefix: string, count: number): EventLine[] {
  return Array.from({ length: count }, (_, n) =>
    event({
      event_id: `${prefix}-${n}`,
      event_time: `2026-0${1 + (n % 3)}-05T00:00:00Z`,
      advertiser_id: `${prefix}-a${n % 30}`,
      publisher_id: `${prefix}-p${(n * 7) % 30}`,
      campaign_id: `campaign-${n % 4}`,
      spend: '1',
      revenue: '0.5',
    }),
  );
}
