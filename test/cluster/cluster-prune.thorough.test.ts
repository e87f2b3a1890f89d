import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { useCluster } from '../support/cluster.ts';
import { event, load } from '../support/events.ts';
import { testSeed as seed, seededRandom, testRounds } from '../support/random.ts';
import { content, requireAgreement } from '../support/rebuilt.ts';
import { useClusterStore } from '../support/store.ts';

/** The limits of a server that keep people from dropping much by mistake, 50 GB by default. */
const limits = ['table', 'partition'].map((what) => `<max_${what}_size_to_drop>1</max_${what}_size_to_drop>`);
const cluster = useCluster(3, { more: limits.join('') });
const db = useClusterStore(cluster);
const now = new Date('2026-11-20T00:00:00Z');
const count = async (table: string, condition = '1') =>
  (
    await select<{ rows: number }>(
      db.store,
      `SELECT toUInt32(count()) AS rows FROM ${table} WHERE ${condition}`,
    )
  )[0]?.rows;

/** An account of publishers lies on another shard than most advertisers whose events it has. */
const lines = (days: readonly string[]) =>
  days.flatMap((event_time) =>
    Array.from({ length: 20 }, (_, n) =>
      event({ event_time, advertiser_id: `a${n}`, publisher_id: `p${n % 7}`, spend: '1', revenue: `0.${n}` }),
    ),
  );

const sums = () => content(db.store);

const agrees = () => requireAgreement(db.store);

test(`a shard that is killed while old months are folded loses and doubles nothing (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  await load(db.store, lines(['2020-01-15', '2023-10-31', '2023-11-01', '2026-11-01']));
  for (let round = 0; round < testRounds(2); round++) {
    await load(db.store, lines(['2020-01-15', '2021-02-03']));
    const before = await sums();
    const pruning = prune(db.store, { keep: 36, anyway: true }, now).then(
      () => 'done',
      () => 'failed',
    );
    await delay(5_000 * random());
    const killed = cluster.nodes[1 + (round % 2)];
    await killed?.kill();
    await killed?.restart();
    await pruning;
    await cluster.answers();
    expect(await retrying(sums), `round ${round}`).toEqual(before);
    await prune(db.store, { keep: 36, anyway: true }, now);
    expect(await count('events', "chunk != 'folded'")).toBe(40);
    expect(await sums()).toEqual(before);
    await agrees();
  }
  const before = await sums();
  await rebuildRollups(db.store, catalog);
  expect(await sums()).toEqual(before);
});

test('old months go from every shard with their reports when that is asked for, however large they are', async () => {
  await prune(db.store, { keep: 36, reports: true, anyway: true, dryRun: true }, now);
  expect(await count('events', "day < '2023-11-01'")).toBeGreaterThan(0);
  await prune(db.store, { keep: 36, reports: true, anyway: true }, now);
  expect(await count('events')).toBe(40);
  expect(await count('campaigns_date')).toBe(40);
  await agrees();
  await rebuildRollups(db.store, catalog);
  expect(await count('campaigns_date')).toBe(40);
});
