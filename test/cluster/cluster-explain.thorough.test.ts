import { expect, test } from 'vitest';
import { prune } from '../../src/cli/store/prune.ts';
import { useCluster } from '../support/cluster.ts';
import { event, load } from '../support/events.ts';
import { explain, explainRandomRows } from '../support/explanations.ts';
import { testSeed as seed, seededRandom, testRounds } from '../support/random.ts';
import { randomEvents } from '../support/random-events.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const db = useClusterStore(cluster);
const service = useService(db);

test(`random rows of accounts on three shards are the sums of their loads and chunks (seed ${seed})`, async () => {
  const events = randomEvents(seed, 4000);
  for (const part of [events.slice(0, 1500), events.slice(1500, 3000), events.slice(3000)]) {
    await load(db.store, part, 40_000);
  }
  const accounts = ['both', 'both-2'];
  await explainRandomRows(service, accounts, seededRandom(seed), testRounds(10));
  await prune(db.store, { keep: 1, anyway: true }, new Date('2026-04-15T00:00:00Z'));
  await load(db.store, randomEvents(seed + 1, 500), 40_000);
  await explainRandomRows(service, accounts, seededRandom(seed), testRounds(6));
});

test('the events of a publisher lie with their advertisers, and are found there', async () => {
  const lines = Array.from({ length: 30 }, (_, n) =>
    event({ advertiser_id: `a${n}`, publisher_id: 'sold-to-many', revenue: '0.5' }),
  );
  await load(db.store, lines);
  const { parts } = await explain(service, 'ad_units', 'sold-to-many');
  expect(parts).toMatchObject([{ kind: 'events' }]);
  expect(String(parts[0]?.events)).toBe('30');
});
