import { expect, test } from 'vitest';
import { type CrashRun, crashRounds } from './crash.ts';
import { testSeed as seed } from './random.ts';

/** Kills each victim in so many rounds, at other moments in every run. */
export function killedDuringLoads(
  rounds: Readonly<Record<CrashRun['victim'], number>>,
  events?: number,
): void {
  test.each(Object.entries(rounds) as [CrashRun['victim'], number][])(
    `no event is lost or counted twice when the %s is killed during a load, %i times (seed ${seed})`,
    async (victim, times) => {
      const told: string[] = [];
      await crashRounds({ rounds: times, victim, seed, events, onRound: (text) => told.push(text) });
      // The undisturbed round is told too.
      expect(told).toHaveLength(times + 1);
    },
    300_000,
  );
}
