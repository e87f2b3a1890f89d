import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../../bench/cluster/local-cluster.ts';
import { connect } from '../../clickhouse/client.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { localCluster } from './compiled.ts';
import { compare, startLoader, writeInput } from './crash.ts';
import { seededRandom } from './random.ts';
import { addressOf } from './store.ts';

/** What is killed in a round. */
export type Killed = 'a shard' | 'a shard and the loader';

export interface ShardCrashRun {
  readonly rounds: readonly Killed[];
  readonly seed: number;
  readonly onRound?: (text: string) => void;
}

/**
 * Loads the same input into a fresh database on three shards in every round and kills one of them with SIGKILL at a
 * random moment, or the loader too. The shard is started again a little later, the same command is
 * repeated until it succeeds, and events, both families of rollups and rejected rows are compared with the recount.
 * @throws at the first round that differs, naming seed, round and difference
 */
export async function shardCrashRounds({ rounds, seed, onRound }: ShardCrashRun): Promise<void> {
  const random = seededRandom(seed);
  const folder = await mkdtemp(join(tmpdir(), 'adtally-shard-crash-'));
  const { startCluster } = await localCluster();
  const cluster = await startCluster(3);
  try {
    // As many accounts as it takes to fill every shard.
    const input = await writeInput(folder, random, { events: 30_000, accounts: 30 });
    let fullMs = 0;
    // Round 0 is not disturbed: it shows how long a load takes.
    for (const [round, killed] of [undefined, ...rounds].entries()) {
      const database = `crash_${seed}_${round}`;
      const asked = cluster.nodes[Math.floor(random() * 3)];
      if (!asked) throw new Error('there are three nodes');
      const address = addressOf(asked, database);
      await migrateCluster(address, cluster.name);
      const startedAt = performance.now();
      let loader = startLoader(address, input.files);
      const victim = 1 + Math.floor(random() * 3);
      const killAfterMs = fullMs * (0.1 + 0.9 * random());
      if (killed) {
        await delay(killAfterMs);
        const shard = cluster.nodes[victim - 1];
        await Promise.all([shard?.kill(), killed === 'a shard and the loader' && loader.kill('SIGKILL')]);
        await delay(1_500 * random());
        await shard?.restart();
      }
      const failures: string[] = [];
      // 4: some rows were rejected; 0: killed when all was done, so that nothing was left to do.
      for (let ended = await loader.ended; ended.code !== 4 && ended.code !== 0; ended = await loader.ended) {
        if (failures.push(lastWords(ended.stderr)) === 5)
          throw new Error(`the load failed 5 times: ${ended.stderr}`);
        loader = startLoader(address, input.files);
      }
      await cluster.answers();
      if (!killed) fullMs = performance.now() - startedAt;
      const difference = await compare(address, input);
      if (difference) throw new Error(`seed ${seed}, shard ${victim} killed, round ${round}: ${difference}`);
      await dropEverywhere(cluster, database);
      onRound?.(
        killed === undefined
          ? `round 0: ${Math.round(fullMs)} ms undisturbed, equal`
          : `round ${round}: ${killed.replace('a shard', `shard ${victim}`)} killed after ${Math.round(killAfterMs)} ms, ${[...failures, 'equal'].join('; again: ')}`,
      );
    }
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Why a loader ended, without the rows that it rejected before. */
function lastWords(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line && !line.startsWith('rejected: '));
  return lines.at(-1) ?? 'killed';
}

async function dropEverywhere(cluster: Cluster, database: string): Promise<void> {
  for (const server of cluster.nodes) {
    const node = connect(addressOf(server, 'default'));
    for (const name of [database, `${database}_shard`]) {
      await node.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` });
    }
    await node.close();
  }
}
