import { expect, test } from 'vitest';
import { crashRounds, type Victim } from './crash.ts';
import { testSeed as seed } from './random.ts';

/** Kills each victim in turn, at other moments in every run. */
export function killedDuringLoads(victims: readonly Victim[], events?: number): void {
  test(`no event is lost or counted twice when ${victims.join(', ')} is killed during a load (seed ${seed})`, async () => {
    const told: string[] = [];
    await crashRounds({ victims, seed, events, onRound: (text) => told.push(text) });
    // The undisturbed round is told too.
    expect(told).toHaveLength(victims.length + 1);
  });
}
