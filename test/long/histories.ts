import { Command } from 'commander';
import { compile } from '../support/compiled.ts';
import { historyRounds } from '../support/histories/rounds.ts';

/** Histories of clients at once, disturbed and judged: `node --import tsx test/long/histories.ts --rounds 500`. */
const { rounds, seed, only, steps } = new Command('histories')
  .option('--rounds <n>', 'how many', Number, 500)
  .option('--seed <n>', 'of files, commands, faults and moments', Number, 1)
  .option('--only <n>', 'only this round', Number)
  .option('--steps', 'tell each command and fault')
  .parse()
  .opts<{ rounds: number; seed: number; only?: number; steps?: true }>();

const compiled = await compile();
const onRound = (text: string): void => void process.stdout.write(`${text}\n`);
try {
  const wrong = await historyRounds({
    rounds,
    seed,
    only,
    commands: 6,
    longestStopMs: 30_000,
    onDisk: process.getuid?.() === 0,
    onRound,
    onStep: steps && onRound,
  });
  if (wrong.length > 0) throw new Error(`${wrong.length} findings`);
} finally {
  await compiled.remove();
}
process.stdout.write(
  `seed ${seed}: ${rounds} rounds, each answer true at a moment between its begin and its end\n`,
);
