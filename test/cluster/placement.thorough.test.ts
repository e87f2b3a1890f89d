import { expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { placeAccount } from '../../clickhouse/placement/place-account.ts';
import { AccountPlacements } from '../../src/http/report/account-placements.ts';
import { askedShards, events, expectRecount, useRecounted } from '../support/accounts.ts';
import { useCluster } from '../support/cluster.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const test = useClusterStore(cluster);
const service = useService(test);
const { accounts, oracle, loadBoth } = useRecounted(test);

it('an account that is too large for a shard is spread over several, and its reports are whole', async () => {
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
    (await askedShards(test, 'account-1', 'campaigns_device_date')).every((shards) => shards.length <= 1),
  ).toBe(true);

  expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
  await rebuildRollups(test.store, catalog);
  expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
  await expectRecount(service, oracle, ['giant']);
});

it('a service that cannot read the placements asks all shards', async () => {
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
