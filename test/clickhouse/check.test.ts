import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { createMigrated } from '../support/store.ts';

let store: Store;

beforeEach(async () => {
  const address = { ...inject('clickhouse'), database: `test_${randomBytes(6).toString('hex')}` };
  await createMigrated(address);
  store = connect(address);
});

afterEach(async () => {
  await store.command({ query: `DROP DATABASE IF EXISTS ${store.address.database} SYNC` });
  await store.close();
});

async function command(query: string): Promise<void> {
  await store.command({ query });
}

const statementOf = async (view: string) => {
  const [row] = await select<{ as_select: string }>(
    store,
    'SELECT as_select FROM system.tables WHERE database = currentDatabase() AND name = {view:String}',
    { view },
  );
  return row?.as_select ?? '';
};

it('names every difference between the live schema and the catalog', async () => {
  const finest = (await statementOf('ad_units_device_site_date_view')).replace("!= ''", "!= 'x'");
  for (const change of [
    'DROP TABLE campaigns_date_view SYNC',
    'DROP TABLE campaigns_creative_date SYNC',
    'ALTER TABLE campaigns_device_date ADD COLUMN extra UInt8',
    'ALTER TABLE ad_units_date MODIFY COLUMN impressions SimpleAggregateFunction(max, UInt64)',
    'ALTER TABLE events MODIFY COLUMN referrals UInt64',
    'DROP DICTIONARY site_names SYNC',
    'CREATE OR REPLACE DICTIONARY campaign_names (account_id String, campaign_id String, name String) PRIMARY KEY account_id, campaign_id SOURCE(NULL()) LAYOUT(COMPLEX_KEY_HASHED()) LIFETIME(0)',
    'DROP TABLE ad_units_device_site_date_view SYNC',
    `CREATE MATERIALIZED VIEW ad_units_device_site_date_view TO ad_units_device_site_date AS ${finest}`,
    'DROP TABLE ad_units_site_date SYNC',
    'CREATE TABLE ad_units_site_date AS ad_units_device_site_date ENGINE = SummingMergeTree PARTITION BY day ORDER BY account_id SETTINGS non_replicated_deduplication_window = 10000',
  ]) {
    await command(change);
  }
  const differences = await checkSchema(store, catalog);
  expect(differences.sort()).toEqual([
    'ad_units_date: column impressions is SimpleAggregateFunction(max, UInt64), the catalog wants SimpleAggregateFunction(sum, UInt128)',
    expect.stringMatching(
      /^ad_units_device_site_date_view: selects «.*!= 'x'.*», the catalog wants «.*!= ''.*»$/,
    ),
    'ad_units_site_date: column device is not in the catalog',
    'ad_units_site_date: the engine is SummingMergeTree, the catalog wants AggregatingMergeTree',
    'ad_units_site_date: the partition is day, the catalog wants toYYYYMM(day)',
    'ad_units_site_date: the sort key is account_id, the catalog wants account_id, day, ad_unit_id, site_id',
    'campaign_names: column name_json is missing',
    'campaigns_creative_date: the table is missing',
    'campaigns_date_view: the view is missing, so loads do not reach campaigns_date',
    'campaigns_device_date: column extra is not in the catalog',
    'events: column referrals is UInt64, the catalog wants UInt128',
    'site_names: the dictionary is missing',
  ]);
});

it.each([
  ['writes into another table', 'MATERIALIZED VIEW campaigns_date_view TO elsewhere'],
  ['writes nowhere', 'VIEW campaigns_date_view'],
])('names a view that %s', async (_, view) => {
  const statement = await statementOf('campaigns_date_view');
  await command('CREATE TABLE elsewhere AS campaigns_date');
  await command('DROP TABLE campaigns_date_view SYNC');
  await command(`CREATE ${view} AS ${statement}`);
  expect(await checkSchema(store, catalog)).toEqual([expect.stringContaining('campaigns_date_view')]);
});

it('names a table that would count a retried chunk twice', async () => {
  const tables = ['campaigns_date', 'chunk_days', 'events', 'mails', 'rejected_rows'];
  for (const table of tables)
    await command(`ALTER TABLE ${table} RESET SETTING non_replicated_deduplication_window`);
  expect((await checkSchema(store, catalog)).sort()).toEqual(
    tables.map((table) => `${table}: non_replicated_deduplication_window is 0, but has to be 10000`),
  );
});

it('names what loads need and the catalog does not tell: views, the ledger, what is kept of the past', async () => {
  await command('DROP TABLE events_view SYNC');
  await command('DROP TABLE sites_past_view SYNC');
  await command('DROP VIEW store_state SYNC');
  await command('DROP TABLE withdrawn_chunks SYNC');
  await command('ALTER TABLE load_chunks DROP COLUMN content');
  await command('ALTER TABLE tokens DROP COLUMN purpose');
  // Of both something else is told, too.
  await command('ALTER TABLE campaigns_closed MODIFY COLUMN spent Decimal(38, 2), DROP COLUMN campaign');
  await command(
    "ALTER TABLE incoming_staging MODIFY COLUMN day MATERIALIZED toDate(event_time, 'Asia/Tokyo'), DROP COLUMN fields",
  );
  expect((await checkSchema(store, catalog)).sort()).toEqual([
    'campaigns_closed: column campaign is missing',
    'campaigns_closed: column spent is Decimal(38, 2), the catalog wants Decimal(38, 6)',
    'events_view: the view is missing',
    "incoming_staging: column day is toDate(event_time, 'Asia/Tokyo'), the settings want toDate(event_time, 'UTC')",
    'incoming_staging: column fields is missing',
    'load_chunks: column content is missing',
    'sites_past_view: the view is missing',
    'store_state: the view is missing',
    'tokens: column purpose is missing',
    'withdrawn_chunks: the table is missing',
  ]);
});
