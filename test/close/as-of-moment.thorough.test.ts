import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pastRound, stepLists } from '../support/past-rounds.ts';
import { testSeed as seed, testRounds } from '../support/random.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);

test(`a report as of a moment is what a report said then, or is refused, whatever came since (seed ${seed})`, async () => {
  let run = 0;
  let told = 0;
  await fc.assert(
    fc.asyncProperty(stepLists(12), async (list) => {
      const round = await pastRound(db, service, list, ++run);
      if (process.env.SHOW)
        console.log(
          run,
          list.length,
          round.told,
          round.untold.length,
          JSON.stringify([...new Set(round.untold.map(({ after, why }) => `${after}: ${why}`))], null, 1),
        );
      expect(round.wrong).toEqual([]);
      told += round.told;
    }),
    { seed, numRuns: testRounds(3), endOnFailure: true },
  );
  expect(told).toBeGreaterThan(50);
});
