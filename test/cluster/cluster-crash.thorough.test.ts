import { expect, test } from 'vitest';
import { testSeed as seed } from '../support/random.ts';
import { shardCrashRounds } from '../support/shard-crash.ts';

// Other moments in every run; test/long/crash-rounds.ts --shard has more rounds of a seed.
test(`no event is lost or counted twice when a shard is killed during a load, 2 times (seed ${seed})`, async () => {
  const told: string[] = [];
  await shardCrashRounds({ rounds: 2, seed, onRound: (text) => told.push(text) });
  expect(told).toHaveLength(3);
});
