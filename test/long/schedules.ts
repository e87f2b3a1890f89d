import { Command } from 'commander';
import fc from 'fast-check';
import { crashesAtEveryStep } from '../support/simulated/every-step.ts';
import { runSchedule, type Schedule } from '../support/simulated/rounds.ts';
import { schedules } from '../support/simulated/schedules.ts';
import { simulateTime } from '../support/simulated/time.ts';

/**
 * The code of the loader against a simulated store: `node --import tsx test/long/schedules.ts --schedules 100000`. A failure
 * prints the line that runs it again.
 */
const {
  schedules: numRuns,
  every,
  seed,
  path,
  part,
  seconds,
} = new Command('schedules')
  .option('--schedules <n>', 'how many of chance', Number, 10_000)
  .option('--every', 'two loaders of two chunks instead, each killed at each of its statements')
  .option('--part <k/n>', 'of --every only each nth, from the kth: for several of these at once', '1/1')
  .option('--seed <n>', 'of the schedules', Number, Date.now() % 2 ** 31)
  .option('--path <path>', 'of a schedule that failed')
  .option('--seconds <n>', 'no more are begun after', Number, 86_400)
  .parse()
  .opts<{ schedules: number; every?: true; seed: number; path?: string; part: string; seconds: number }>();

simulateTime();
const began = process.hrtime.bigint();
let [rounds, statements] = [0, 0];
const run = async (schedule: Schedule): Promise<void> => {
  const round = await runSchedule(schedule);
  rounds++;
  statements += round.statements;
  if (round.wrong.length > 0) throw new Error(round.wrong.join('; '));
};
const tell = () => {
  const took = Number(process.hrtime.bigint() - began) / 1e9;
  process.stdout.write(
    `${rounds} schedules and ${statements} statements in ${took.toFixed(0)} s (${(rounds / took).toFixed(0)} schedules a second)\n`,
  );
};

if (every) {
  const [k = 1, n = 1] = part.split('/').map(Number);
  for (const schedule of crashesAtEveryStep(n, k - 1)) {
    if (process.hrtime.bigint() - began > BigInt(seconds) * 1_000_000_000n) break;
    await run(schedule).catch((error: Error) => {
      throw new Error(`${error.message}\n${JSON.stringify(schedule)}`);
    });
  }
} else {
  const found = await fc.check(fc.asyncProperty(schedules, run), {
    ...{ numRuns, seed, interruptAfterTimeLimit: seconds * 1_000 },
    ...(path !== undefined && { path }),
  });
  if (found.failed) {
    tell();
    throw new Error(
      `${found.errorInstance instanceof Error ? found.errorInstance.message : ''}\n${JSON.stringify(found.counterexample)}\nnode --import tsx test/long/schedules.ts --seed ${seed} --path ${found.counterexamplePath}`,
    );
  }
}
tell();
if (rounds === 0) throw new Error('no schedule was run');
process.stdout.write(`${every ? 'each' : `seed ${seed}: each`} counted every event once\n`);
