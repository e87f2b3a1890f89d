import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrate, pendingMigrations } from '../../clickhouse/migrate/migrate.ts';
import {
  type Migration,
  readMigrations,
  statementsForNode,
} from '../../clickhouse/migrate/migration-files.ts';
import { event, load } from '../support/events.ts';

let address: Address;
let store: Store;

/** A store as version 9 left it, with rows of every event type. */
beforeEach(async () => {
  address = { ...inject('clickhouse'), database: `test_${randomBytes(6).toString('hex')}` };
  const root = connect({ ...address, database: 'default' });
  await root.command({ query: `CREATE DATABASE ${address.database}` }).finally(() => root.close());
  store = connect(address);
  await store.command({
    query: `CREATE TABLE migrations (version UInt32, name String, checksum String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3))
            ENGINE = ReplacingMergeTree ORDER BY version`,
  });
  for (const migration of (await readMigrations()).filter(({ version }) => version <= 9)) {
    await run(migration);
    const { version, name, checksum } = migration;
    await store.insert({
      table: 'migrations',
      values: [{ version, name, checksum }],
      format: 'JSONEachRow',
    });
  }
  // In two inserts and two months: several parts for the mutation.
  for (const half of [0, 1]) {
    await store.command({
      query: `INSERT INTO events (event_id, event_time, event_type, advertiser_id, campaign_id, creative_id,
                publisher_id, ad_unit_id, site_id, device, quantity, spend, revenue, confirmed, chunk)
              SELECT toString(number), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + cityHash64(number) % (59 * 86400),
                ['ad_request', 'impression', 'referral', 'conversion', 'revenue'][1 + number % 5],
                if(number % 4 = 0, '', concat('a', toString(number % 3))), if(number % 4 = 0, '', 'c'), '',
                if(number % 4 = 1, '', concat('p', toString(number % 3))), if(number % 4 = 1, '', 'u'), '',
                ['desktop', 'mobile'][1 + number % 2], if(number < 10, 4294967295, 1 + number % 1000), 0.000001 * number, 0.01,
                number % 2, 'chunk ${half}'
              FROM numbers(${half * 1000}, 1000)`,
    });
  }
});

afterEach(async () => {
  await store.command({ query: `DROP DATABASE IF EXISTS ${address.database} SYNC` });
  await store.close();
});

/** @param until how many statements; absent: all */
async function run({ statements }: Migration, until?: number): Promise<void> {
  for (const statement of statements.slice(0, until)) {
    for (const { query } of statementsForNode(statement, { ...address, timezone: 'UTC' })) {
      await store.command({ query });
    }
  }
}

function sums(columns: readonly string[]): Promise<unknown[]> {
  return select(
    store,
    `SELECT ${columns.map((sum, n) => `toString(${sum}) AS s${n}`)}, toString(count()) AS events,
       toString(sum(e.spend)) AS spend, toString(sum(cityHash64(event_id, event_time, advertiser_id, publisher_id, chunk, loaded_at))) AS rest
     FROM events AS e GROUP BY toYYYYMM(day) ORDER BY toYYYYMM(day)`,
  );
}

const before = ['ad_request', 'impression', 'referral', 'conversion'].map(
  (type) => `sumIf(e.quantity, event_type = '${type}')`,
);
const after = ['ad_requests', 'impressions', 'referrals', 'conversions'].map((name) => `sum(e.${name})`);

async function expectCounted(counts: unknown[]): Promise<void> {
  expect(await pendingMigrations(store)).toEqual([]);
  expect(await checkSchema(store, catalog)).toEqual([]);
  expect(await sums(after)).toEqual(counts);
  // None has a count of another type.
  const mixed =
    'SELECT count() AS n FROM events WHERE (ad_requests > 0) + (impressions > 0) + (referrals > 0) + (conversions > 0) > 1';
  expect(await select(store, mixed)).toEqual([{ n: 0 }]);
  expect(await verifyRollups(store, catalog)).toEqual({ differences: [], more: false });
}

it('what was counted before events had counts of their own is counted as before', async () => {
  const counts = await sums(before);
  expect(await migrate(address)).toEqual(expect.arrayContaining(['0010_counts', '0011_incoming']));
  await expectCounted(counts);

  await load(store, [event({ event_type: 'conversion', quantity: 3 })]);
  expect(await verifyRollups(store, catalog)).toEqual({ differences: [], more: false });
});

it.each([10, 11])(
  'migration %i can be interrupted after every statement and run again',
  async (interrupted) => {
    const counts = await sums(before);
    for (const migration of await readMigrations()) {
      if (migration.version < 10 || migration.version > interrupted) continue;
      const steps = migration.version === interrupted ? migration.statements.keys() : [];
      for (const step of steps) await run(migration, step + 1);
      await run(migration);
    }
    await migrate(address);
    await expectCounted(counts);
  },
);
