import { Command } from 'commander';
import { arrivalRounds } from '../support/arrivals/rounds.ts';
import { compile } from '../support/compiled.ts';

/** Events that arrive in every way at once: `node --import tsx test/long/arrivals.ts --rounds 300`. */
const { rounds, seed, shards } = new Command('arrivals')
  .option('--rounds <n>', 'how many', Number, 300)
  .option('--shards <n>', 'of a cluster', Number, 1)
  .option('--seed <n>', 'of contents, ways, faults and moments', Number, 1)
  .parse()
  .opts<{ rounds: number; seed: number; shards: number }>();

const compiled = await compile();
try {
  await arrivalRounds({ rounds, seed, shards, onRound: (text) => void process.stdout.write(`${text}\n`) });
} finally {
  await compiled.remove();
}
process.stdout.write(`seed ${seed}: ${rounds} rounds, every one equal to the recount\n`);
