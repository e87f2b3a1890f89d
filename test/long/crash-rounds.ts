import { Command } from 'commander';
import { crashRounds, type Victim } from '../support/crash.ts';
import { type Killed, shardCrashRounds } from '../support/shard-crash.ts';

/** The long run of the crash tests: `node --import tsx test/long/crash-rounds.ts --loader 100 --clickhouse 50`. */
const { loader, clickhouse, shard, seed } = new Command('crash-rounds')
  .option('--loader <rounds>', 'rounds in which the loader is killed', Number, 100)
  .option('--clickhouse <rounds>', 'rounds in which ClickHouse is killed', Number, 50)
  .option('--shard <rounds>', 'rounds in which a shard of a cluster is killed', Number, 20)
  .option('--seed <n>', 'of input and moments', Number, 1)
  .parse()
  .opts<{ loader: number; clickhouse: number; shard: number; seed: number }>();

const onRound = (text: string): void => void process.stdout.write(`${text}\n`);
const victims = [...Array<Victim>(loader).fill('loader'), ...Array<Victim>(clickhouse).fill('clickhouse')];
await crashRounds({ victims, seed, onRound });
const rounds = Array.from(
  { length: shard },
  (_, n): Killed => (n % 2 ? 'a shard and the loader' : 'a shard'),
);
await shardCrashRounds({ rounds, seed, onRound });
process.stdout.write(
  `seed ${seed}: ${loader}, ${clickhouse} and ${shard} rounds, every one equal to the recount\n`,
);
