import { expect, test } from 'vitest';
import { arrivalRounds } from '../../support/arrivals/rounds.ts';
import { testSeed as seed, testRounds } from '../../support/random.ts';

// Many more: node --import tsx test/long/arrivals.ts --rounds 300
test(`events that come as objects and as bodies at once come to what a recount says (seed ${seed})`, async () => {
  const told: string[] = [];
  await arrivalRounds({ rounds: testRounds(4), seed, onRound: (text) => told.push(text) });
  expect(told).toHaveLength(testRounds(4));
}, 600_000);
