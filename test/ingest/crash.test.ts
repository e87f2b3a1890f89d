import { expect, test } from 'vitest';
import { crashRounds } from '../support/crash.ts';

// Other moments in every run; a failure names the seed, and test/long/crash-rounds.ts repeats it.
const seed = Date.now() % 2 ** 31;

test.each([
  ['loader', 4],
  ['clickhouse', 2],
] as const)(
  `no event is lost or counted twice when the %s is killed during a load, %i times (seed ${seed})`,
  async (victim, rounds) => {
    const told: string[] = [];
    await crashRounds({ rounds, victim, seed, onRound: (text) => told.push(text) });
    // The undisturbed round is told too.
    expect(told).toHaveLength(rounds + 1);
  },
  300_000,
);
