import fc from 'fast-check';
import { expect, test } from 'vitest';
import { load } from '../support/events.ts';
import { explain, explainCells, explainRandomRows } from '../support/explanations.ts';
import { pastRound, type Step, stepLists } from '../support/past-rounds.ts';
import { testSeed as seed, seededRandom, testRounds } from '../support/random.ts';
import { randomEvents } from '../support/random-events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);

test(`many random rows are the sums of their loads and chunks (seed ${seed})`, async () => {
  const events = randomEvents(seed, 4000);
  for (const part of [events.slice(0, 2000), events.slice(2000)]) await load(db.store, part, 40_000);
  await explainRandomRows(service, ['both', 'both-2'], seededRandom(seed), testRounds(120));
});

/** Ten thousand cells: `TEST_ROUNDS=200`. */
test(
  `cells of a store that was loaded, taken back, replaced, corrected and pruned are the sums of their parts (seed ${seed})`,
  async () => {
    const [chosen = []] = fc.sample(stepLists(8), { seed, numRuns: 1 });
    const always: Step[] = [1, 2, 3].map((n) => ({ kind: 'load', seed: seed + n }));
    const { wrong } = await pastRound(db, service, [...always, ...chosen], 0);
    expect(wrong).toEqual([]);
    expect((await explainCells(db, seed, testRounds(50))).size).toBeGreaterThan(0);
  },
  testRounds(900_000),
);

test(`while loads arrive an explanation adds up, or says that it does not (seed ${seed})`, async () => {
  const loading = (async () => {
    for (let n = 1; n <= testRounds(12); n++) await load(db.store, randomEvents(seed + n, 300), 20_000);
  })();
  let ended = false;
  void loading.finally(() => {
    ended = true;
  });
  const body = { start_time: '2026-01-01', end_time: '2026-03-31', row: {} };
  while (!ended) {
    const response = await service.post('/v1/campaigns/explain', 'both', body);
    if (response.status === 200) await explain(service, 'ad_units', 'both').catch(differs);
    else expect(await response.json()).toMatchObject({ code: 'explanation_differs' });
  }
  await loading;
  expect((await explain(service, 'campaigns', 'both')).parts.length).toBeGreaterThan(1);
});

/** The only reason for which an answer may be missing. */
function differs(error: unknown): void {
  expect(String(error)).toContain('explanation_differs');
}
