import { beforeAll, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { growCluster, placeAccount } from '../../clickhouse/placement/place-account.ts';
import { events, homes, year } from '../support/accounts.ts';
import { asked } from '../support/asked-shards.ts';
import { useCluster } from '../support/cluster.ts';
import { type EventLine, load } from '../support/events.ts';
import { answer, Oracle } from '../support/oracle.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';

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

it('a report asks the shard of its account and no other', async () => {
  const home = await homes(test.store);
  expect(new Set(home.values())).toEqual(new Set([1, 2, 3]));
  for (const account of accounts) {
    await answer(service, '/v1/campaigns/breakdowns/device', account, year);
    // The service asks the second node, which reads its own shard in the same query.
    const shard = home.get(account) ?? 0;
    expect(await asked(test, account, 'campaigns_device_date'), account).toEqual([
      shard === 2 ? [] : [shard],
    ]);
  }
});

it('places nothing while a chunk is in doubt, nor on a shard that is not there', async () => {
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
});

it('verify names an account with rows where no report looks', async () => {
  await test.shards[0]?.command({
    query: `INSERT INTO campaigns_date (account_id, day, campaign_id)
            SELECT concat('lost-', toString(number)), '2027-01-01', 'c' FROM numbers(20)`,
  });
  const { differences } = await verifyRollups(test.store, catalog, { from: '2027-01-01', to: '2027-01-01' });
  const found = differences.filter(({ measure }) => measure === 'shard');
  expect(found.length).toBeGreaterThan(5);
  expect(found[0]).toMatchObject({ table: 'campaigns_date', day: '2027-01-01', rollup: '1' });
});
