import { beforeAll, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { growCluster, placeAccount } from '../../clickhouse/placement/place-account.ts';
import { AccountPlacements } from '../../src/http/report/account-placements.ts';
import { events, expectRecount, homes, year } from '../support/accounts.ts';
import { useCluster } from '../support/cluster.ts';
import { type EventLine, load } from '../support/events.ts';
import { thorough } from '../support/mode.ts';
import { answer, Oracle } from '../support/oracle.ts';
import { useService } from '../support/service.ts';
import { type TestStore, useClusterStore } from '../support/store.ts';

/** The shards that were asked for a rollup by reports of an account: of each report a list. */
async function asked(test: TestStore, account: string, rollup: string): Promise<number[][]> {
  const initial = new Map<string, Set<number>>();
  for (const [n, shard] of test.shards.entries()) {
    await shard.command({ query: 'SYSTEM FLUSH LOGS' });
    const queries = await select<{ id: string; first: number; rows: number }>(
      shard,
      `SELECT initial_query_id AS id, is_initial_query AS first, toUInt32(read_rows) AS rows FROM system.query_log
       WHERE type = 'QueryFinish' AND position(query, {account:String}) > 0 AND position(query, {rollup:String}) > 0
         AND position(query, 'query_log') = 0`,
      { account: `'${account}'`, rollup },
    );
    for (const { id, first } of queries) {
      const shards = initial.get(id) ?? new Set();
      initial.set(id, shards);
      if (!first) shards.add(n + 1);
    }
  }
  return [...initial.values()].map((shards) => [...shards].sort());
}

const cluster = useCluster(3);
const test = useClusterStore(cluster);
const service = useService(test);
const accounts = Array.from({ length: 12 }, (_, n) => `account-${n}`);
const oracle = new Oracle();
const loadBoth = async (some: EventLine[]) => {
  await load(test.store, some, 50_000);
  oracle.load(some);
};

beforeAll(() => loadBoth(events(accounts, 1_200)));

it.runIf(!thorough)('a report asks the shard of its account and no other', async () => {
  const home = await homes(test.store);
  expect(new Set(home.values())).toEqual(new Set([1, 2, 3]));
  for (const account of accounts) {
    await answer(service, '/v1/campaigns/breakdowns/device', account, year);
    expect(await asked(test, account, 'campaigns_device_date'), account).toEqual([[home.get(account)]]);
  }
});

it.runIf(!thorough)('an account whose events were all taken back is asked for on all shards', async () => {
  await test.store.command({
    query:
      "INSERT INTO ad_units_changes (account_id, day, changed_at) VALUES ('emptied', '2026-01-01', now64(6))",
  });
  expect(await placeAccount(test.store, catalog, { account: 'emptied', shards: [1] })).toBe(true);
  expect(await placeAccount(test.store, catalog, { account: 'unknown', shards: [1] })).toBe(false);
});

it.runIf(!thorough)(
  'places nothing while a chunk is in doubt, nor on a shard that is not there',
  async () => {
    const to = (shards: number[]) => placeAccount(test.store, catalog, { account: 'giant', shards });
    await expect(to([4])).rejects.toThrow('there is no shard 4: adtally has shards 1 to 3');
    await Promise.all(
      test.shards.map((shard) =>
        shard.command({
          query: 'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6) WHERE true',
          clickhouse_settings: { mutations_sync: '2' },
        }),
      ),
    );
    await expect(to([1])).rejects.toThrow(/load \d{14}-\w+ was interrupted.*Load the file again first/);
    await expect(growCluster(test.store, catalog)).rejects.toThrow(/was interrupted/);
  },
);

it.runIf(!thorough)('verify names an account with rows where no report looks', async () => {
  await test.shards[0]?.command({
    query: `INSERT INTO campaigns_date (account_id, day, campaign_id)
            SELECT concat('lost-', toString(number)), '2027-01-01', 'c' FROM numbers(20)`,
  });
  const { differences } = await verifyRollups(test.store, catalog, { from: '2027-01-01', to: '2027-01-01' });
  const found = differences.filter(({ measure }) => measure === 'shard');
  expect(found.length).toBeGreaterThan(5);
  expect(found[0]).toMatchObject({ table: 'campaigns_date', day: '2027-01-01', rollup: '1' });
});

it.runIf(thorough)(
  'an account that is too large for a shard is spread over several, and its reports are whole',
  async () => {
    await loadBoth(events(['giant', ...accounts], 600, 10_000));
    const shardsOf = async (table: string) =>
      (
        await select<{ shard: number }>(
          test.store,
          `SELECT DISTINCT _shard_num AS shard FROM ${table} WHERE account_id = 'giant' ORDER BY shard`,
        )
      ).map(({ shard }) => shard);
    expect(await shardsOf('campaigns_date')).toHaveLength(1);

    expect(await placeAccount(test.store, catalog, { account: 'giant', shards: [1, 2, 3] })).toBe(true);
    expect(await checkSchema(test.store, catalog)).toEqual([]);
    await loadBoth(events(['giant'], 600, 20_000));
    expect(await shardsOf('campaigns_date')).toEqual([1, 2, 3]);
    expect(await shardsOf('ad_units_date')).toEqual([1, 2, 3]);
    await expectRecount(service, oracle, ['giant', 'account-1']);
    expect(
      (await asked(test, 'account-1', 'campaigns_device_date')).every((shards) => shards.length <= 1),
    ).toBe(true);

    expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
    await rebuildRollups(test.store, catalog);
    expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
    await expectRecount(service, oracle, ['giant']);
  },
);

it.runIf(thorough)('a service that cannot read the placements asks all shards', async () => {
  let now = 0;
  const placements = new AccountPlacements({
    store: test.store,
    refreshMs: 3_600_000,
    now: () => now,
    onError: () => {},
  });
  await placements.start();
  const { database } = test.store.address;
  expect([placements.routingOf('account-1'), placements.routingOf('giant')]).toMatchObject([
    { shards: 'one', database },
    { shards: 'all', database },
  ]);
  now += 4_001;
  expect(placements.routingOf('account-1')).toMatchObject({ shards: 'all', database });
  placements.stop();
});
