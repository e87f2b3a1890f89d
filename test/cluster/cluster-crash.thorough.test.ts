import { expect, test } from 'vitest';
import { testSeed as seed } from '../support/random.ts';
import { type Killed, shardCrashRounds } from '../support/shard-crash.ts';

// Other moments in every run; test/long/crash-rounds.ts --shard has more rounds of a seed.
test.each<Killed>(['a shard', 'a shard and the loader'])(
  `no event is lost or counted twice after SIGKILL of %s during a load (seed ${seed})`,
  async (killed) => {
    const told: string[] = [];
    await shardCrashRounds({ rounds: [killed], seed, onRound: (text) => told.push(text) });
    expect(told).toHaveLength(2);
  },
);
