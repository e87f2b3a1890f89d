import { expect, test } from 'vitest';
import { testSeed as seed } from '../support/random.ts';
import { type Killed, shardCrashRounds } from '../support/shard-crash.ts';

// Other moments in every run; test/long/crash-rounds.ts --shard has more rounds of a seed.
test(`no event is lost or counted twice after SIGKILL of a shard during a load, with the loader and without (seed ${seed})`, async () => {
  const rounds: Killed[] = ['a shard', 'a shard and the loader'];
  const told: string[] = [];
  await shardCrashRounds({ rounds, seed, onRound: (text) => told.push(text) });
  // The undisturbed round is told too.
  expect(told).toHaveLength(rounds.length + 1);
});
