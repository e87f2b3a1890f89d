import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../clickhouse/client.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { embedded, localCluster } from './compiled.ts';
import type { Command, Ended } from './process.ts';
import type { Dice } from './round-files.ts';
import { createMigrated } from './store.ts';

/** A new store of its own engine, or of several. */
export interface KillableStore {
  readonly address: Address;
  /** Kills the engine, or a shard, which comes back. */
  killEngine(dice: Dice): Promise<void>;
  stop(): Promise<void>;
}

/** @param shards more than one: a cluster; `dataDir` is where a single engine keeps its data */
export function startKillable(shards: number, dataDir: string): Promise<KillableStore> {
  const database = `rounds_${randomBytes(4).toString('hex')}`;
  return shards > 1 ? startShards(shards, database) : startEngine(dataDir, database);
}

async function startEngine(dataDir: string, database: string): Promise<KillableStore> {
  const lease = await (await embedded()).acquireEmbedded(dataDir);
  const address = { ...lease.address, database };
  await createMigrated(address);
  const killEngine = async () => {
    // The engine of the file may be gone: it is just restarting.
    send(JSON.parse(await readFile(join(dataDir, 'clickhouse.json'), 'utf8')), 'SIGKILL');
  };
  return { address, killEngine, stop: () => lease.release() };
}

async function startShards(count: number, database: string): Promise<KillableStore> {
  const cluster = await (await localCluster()).startCluster(count);
  const [first] = cluster.nodes;
  if (!first) throw new Error('the cluster has no nodes');
  const { url, user, password } = first;
  const address = { url, user, password, database };
  await migrateCluster(address, cluster.name);
  const killEngine = async (dice: Dice) => {
    const shard = cluster.nodes[dice.below(count)];
    await shard?.kill();
    await delay(dice.below(1_500));
    await shard?.restart();
    await cluster.answers();
  };
  return { address, killEngine, stop: () => cluster.stop() };
}

/** Sends a signal to a process that may have ended. */
export function send({ pid }: Pick<Command, 'pid'>, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Whether a command ended with a stack trace. */
export const isCrash = ({ stderr }: Ended): boolean => /^ {4}at /m.test(stderr);

/** @throws for a command that ended with a stack trace */
export function refuseCrash(ended: Ended): void {
  if (isCrash(ended)) throw new Error(`a stack trace: ${ended.stderr}`);
}
