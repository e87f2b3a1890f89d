import { Command } from 'commander';
import { randomRounds } from '../support/rounds.ts';

/** Random loads, disturbed in every way: `node --import tsx test/long/rounds.ts --rounds 200`. */
const { rounds, seed, shards } = new Command('rounds')
  .option('--rounds <n>', 'how many', Number, 200)
  .option('--shards <n>', 'of a cluster', Number, 1)
  .option('--seed <n>', 'of files, flags, faults and moments', Number, 1)
  .parse()
  .opts<{ rounds: number; seed: number; shards: number }>();

await randomRounds({ rounds, seed, shards, onRound: (text) => void process.stdout.write(`${text}\n`) });
process.stdout.write(`seed ${seed}: ${rounds} rounds, every one equal to the recount\n`);
