import { expect, test } from 'vitest';
import { testSeed as seed } from '../../support/random.ts';
import { randomRounds } from '../../support/rounds.ts';

// Many more: node --import tsx test/long/rounds.ts --rounds 200
test(`random loads, disturbed in every way, come to what a recount says (seed ${seed})`, async () => {
  const told: string[] = [];
  await randomRounds({ rounds: 5, seed, onRound: (text) => told.push(text) });
  expect(told).toHaveLength(5);
}, 600_000);
