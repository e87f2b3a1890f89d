import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Store } from '../../clickhouse/client.ts';
import { unload } from '../../ingest/history/unload.ts';
import { event, load, ndjson } from '../support/events.ts';
import { usePast } from '../support/past.ts';
import { pastRound, stepLists } from '../support/past-rounds.ts';
import { testSeed as seed, testRounds } from '../support/random.ts';
import { replaceBy } from '../support/replace-suite.ts';
import { useService } from '../support/service.ts';
import { shards, useStore } from '../support/store.ts';
import { failingAt, unloadSteps, useUnloads } from '../support/unloads.ts';

const db = useStore();
const service = useService(db);
const past = usePast(db, service);
const unloads = useUnloads(db);
const now = () => new Date();

test(`a report as of a moment is what a report said then, or is refused, whatever came since (seed ${seed})`, async () => {
  let run = 0;
  let told = 0;
  await fc.assert(
    fc.asyncProperty(stepLists(12), async (list) => {
      const round = await pastRound(db, service, list, ++run);
      expect(round.wrong).toEqual([]);
      told += round.told;
    }),
    { seed, numRuns: testRounds(1), endOnFailure: true },
  );
  expect(told).toBeGreaterThan(0);
});

/** Answers with their times, none of which may be told otherwise. */
function keptAnswers(account: string) {
  const given: [at: string, answer: unknown][] = [];
  return {
    give: async () => {
      given.push([await past.now(), await past.asked(account)]);
    },
    expectNothingWrong: async () => {
      for (const [at, answer] of given) {
        const told = await past.asked(account, at);
        if (!Array.isArray(told)) expect(told).toEqual(answer);
        else expect(told.slice(0, 2)).toEqual([409, 'as_of_too_old']);
      }
    },
  };
}

/** Kills work at a step, before and after it, lets it end, and expects that no moment is ever told otherwise than it was answered. */
async function expectNeverToldWrong(
  step: RegExp,
  prepare: () => Promise<(store: Store) => Promise<unknown>>,
): Promise<void> {
  const { account } = unloads;
  const work = await prepare();
  const { give, expectNothingWrong } = keptAnswers(account);
  await give();
  for (const when of ['before', 'after'] as const) {
    await expect(work(failingAt(db.store, step, when))).rejects.toThrow('killed');
    await give();
    await expectNothingWrong();
  }
  await work(db.store);
  const after = [await past.now(), await past.asked(account)] as const;
  await load(db.store, [event({ advertiser_id: account, spend: '8' })]);
  expect(await past.asked(account, after[0])).toEqual(after[1]);
  await expectNothingWrong();
}

test.skipIf(shards > 1).each(unloadSteps)(
  'what an unload that was killed at %s took away is never told wrong',
  (step) =>
    expectNeverToldWrong(step, async () => {
      const { account, file } = unloads;
      const id = await unloads.load(await file('e.ndjson', ndjson(unloads.events(40))));
      await load(db.store, [event({ advertiser_id: account, spend: '7' })]);
      return (store) => unload(store, id, now);
    }),
);

/** What a replacement does, in this order. */
const replaceSteps = [
  /INSERT INTO past_events/,
  /INSERT INTO withdrawn_chunks/,
  /EXCHANGE TABLES .* AND events$/,
  /EXCHANGE TABLES .* AND campaigns_date$/,
  /INSERT INTO loads \(\* EXCEPT/,
] as const;

test.skipIf(shards > 1).each(replaceSteps)(
  'what a replacement that was killed at %s took away is never told wrong',
  (step) =>
    expectNeverToldWrong(step, async () => {
      const { file } = unloads;
      const target = { load: await unloads.load(await file('e.ndjson', ndjson(unloads.events(40)))) };
      const path = await file('new.ndjson', ndjson(unloads.events(30, { device: 'tv' })));
      return (store) => replaceBy(store, target, path);
    }),
);
