import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { listTokens } from '../../src/accounts/tokens.ts';
import { useCluster } from '../support/cluster.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { type EventLine, event, load, loadRows, ndjson } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { type Command, environmentOf, outputOf, useCommands } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { addressOf, useClusterStore } from '../support/store.ts';
import { unconfirmedDays } from '../support/unconfirmed-days.ts';

const cluster = useCluster(3);
const test = useClusterStore(cluster);
const service = useService(test);
const commands = useCommands();
const run = useCommandRunners();
let nodes: Store[];
const folder = useFolder();
beforeAll(async () => {
  nodes = cluster.nodes.map((node) => connect(addressOf(node, test.store.address.database)));
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.close()));
});

const node = (number: number): Store => nodes[number - 1] ?? test.store;
const adtally = (number: number, ...args: string[]) => {
  return run(args, environmentOf(node(number).address));
};
const total = async (prefix: string) => {
  const [row] = await select<{ events: number; campaigns: number; ad_units: number }>(
    test.store,
    `SELECT toUInt32((SELECT count() FROM events WHERE startsWith(event_id, {prefix:String}))) AS events,
          toUInt32((SELECT sum(r.impressions) FROM campaigns_date AS r WHERE startsWith(account_id, {prefix:String}))) AS campaigns,
          toUInt32((SELECT sum(r.impressions) FROM ad_units_date AS r WHERE startsWith(account_id, {prefix:String}))) AS ad_units`,
    { prefix },
  );
  return row;
};
const expectVerified = async () => expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
const mutate = (query: string) =>
  Promise.all(
    test.shards.map((shard) => shard.command({ query, clickhouse_settings: { mutations_sync: '2' } })),
  );

/** Impressions of thirty advertisers and thirty publishers, whose ids and whose events' begin alike. */
function impressions(prefix: string, count: number): EventLine[] {
  return Array.from({ length: count }, (_, n) =>
    event({
      event_id: `${prefix}-${n}`,
      event_time: `2026-0${1 + (n % 2)}-05T00:00:00Z`,
      advertiser_id: `${prefix}-a${n % 30}`,
      publisher_id: `${prefix}-p${(n * 7) % 30}`,
      campaign_id: `campaign-${n % 4}`,
      spend: '1',
      revenue: '0.5',
    }),
  );
}

it('a chunk is counted once in both families, whichever nodes it is sent to and how often', async () => {
  const events = impressions('once', 900);
  expect(await load(node(1), events, 60_000)).toMatchObject({ rows: 900, repeatedRows: 0 });
  expect(await total('once')).toEqual({ events: 900, campaigns: 900, ad_units: 900 });
  expect(await load(node(2), events, 60_000)).toMatchObject({ rows: 0, repeatedRows: 900 });
  // The loader died before it could note what was acknowledged, on one of the nodes.
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE true');
  expect(await load(node(3), events, 60_000)).toMatchObject({ rows: 900, repeatedRows: 0 });
  expect(await total('once')).toEqual({ events: 900, campaigns: 900, ad_units: 900 });
  const spread = await select(test.store, 'SELECT _shard_num FROM events GROUP BY 1 ORDER BY 1');
  expect(spread).toEqual([{ _shard_num: 1 }, { _shard_num: 2 }, { _shard_num: 3 }]);
  await expectVerified();
});

it('events without an advertiser are spread by their publisher, and counted', async () => {
  const events = impressions('requests', 300).map(
    ({ advertiser_id: _a, campaign_id: _c, ...line }): EventLine => line,
  );
  await load(test.store, events);
  expect(await total('requests')).toEqual({ events: 300, campaigns: 0, ad_units: 300 });
  const shards =
    "SELECT count(DISTINCT _shard_num) AS shards FROM events WHERE startsWith(event_id, 'requests')";
  expect(await select(test.store, shards)).toEqual([{ shards: 3 }]);
});

it('a load with too many faulty rows leaves nothing of the chunk on any shard', async () => {
  const events = impressions('limit', 300).map((line, n) =>
    n === 299 ? { ...line, device: 'x'.repeat(40) } : line,
  );
  const file = join(folder, 'limit.ndjson');
  await writeFile(file, ndjson(events));
  expect((await adtally(1, 'ingest', 'events', '--max-rejects', '0', file)).code).toBe(1);
  expect(await total('limit')).toEqual({ events: 0, campaigns: 0, ad_units: 0 });
  expect((await adtally(2, 'ingest', 'events', '--dry-run', file)).code).toBe(4);
  expect(await total('limit')).toEqual({ events: 0, campaigns: 0, ad_units: 0 });
});

it('names, tokens and confirmations given to one node hold on every other', async () => {
  const sides = { advertiser_id: 'named', publisher_id: 'paid' };
  await load(test.store, [event({ ...sides, event_time: '2026-02-01T00:00:00Z', spend: '1', revenue: '1' })]);
  await loadRows(node(1), 'campaigns', [['named', 'campaign', 'First']]);
  await loadRows(node(3), 'campaigns', [['named', 'campaign', 'Second']]);
  const report = await service.report('/v1/campaigns', 'named', '2026-02-01', '2026-02-01');
  expect(report).toMatchObject({
    rows: [{ campaign: 'Second' }],
    unconfirmed_revenue_dates: ['2026-02-01'],
  });
  for (const each of nodes) {
    expect(await select(each, "SELECT name FROM campaigns FINAL WHERE account_id = 'named'")).toEqual([
      { name: 'Second' },
    ]);
    expect(await listTokens(each)).toEqual(await listTokens(test.store));
  }
  expect(await confirmDays(node(3), 'named', '2026-02-01', '2026-02-28')).toEqual({ days: 28, changed: 1 });
  expect(await unconfirmedDays(node(2), 'named')).toBe(0);
  const after = await service.report('/v1/campaigns', 'named', '2026-02-01', '2026-02-01');
  expect(after.unconfirmed_revenue_dates).toEqual([]);
});

it('two loaders on two nodes load the same files at once, each event once', async () => {
  const file = join(folder, 'both.ndjson');
  await writeFile(file, ndjson(impressions('both', 6_000)));
  const runs = [1, 2].map((number) => {
    const env = environmentOf(node(number).address);
    return commands.start(['ingest', 'events', '--chunk-bytes', '100000', file], env);
  });
  const ended = await Promise.all(runs.map((run: Command) => run.ended));
  expect(
    ended.map(({ code }) => code),
    ended.map(({ stderr }) => stderr).join(),
  ).toEqual([0, 0]);
  expect(await total('both')).toEqual({ events: 6_000, campaigns: 6_000, ad_units: 6_000 });
  await expectVerified();
});

it('--dedupe counts an event_id once that is present on any shard', async () => {
  const events = impressions('dedupe', 600);
  await load(test.store, events.slice(0, 200));
  const moved = events.slice(0, 100).map((line) => ({ ...line, advertiser_id: 'dedupe-moved' }));
  const file = join(folder, 'dedupe.ndjson');
  await writeFile(file, ndjson([...moved, ...events.slice(100), ...events.slice(500)]));
  const stdout = await outputOf(adtally(2, 'ingest', 'events', '--dedupe', '--json', file));
  expect(JSON.parse(stdout)).toMatchObject({ rows: 400, duplicate_rows: 300 });
  expect(await total('dedupe')).toEqual({ events: 600, campaigns: 600, ad_units: 600 });
  await expectVerified();
});

it('rejected rows are listed and replayed from any node, each once', async () => {
  const events = impressions('replay', 300);
  const faulty = events.map((line, n) => (n % 100 === 7 ? { ...line, device: 'x'.repeat(40) } : line));
  const file = join(folder, 'replay.ndjson');
  await writeFile(file, ndjson(faulty));
  const { code, stdout, stderr } = await adtally(1, 'ingest', 'events', '--json', file);
  expect(code, stderr).toBe(4);
  expect(JSON.parse(stdout)).toMatchObject({ rows: 297, rejected_rows: 3 });
  const [id] = JSON.parse(stdout).loads;
  const { stdout: rejects } = await adtally(2, 'rejects', id, '--csv');
  expect(rejects.trim().split('\n')).toHaveLength(4);
  const corrected = join(folder, 'corrected.csv');
  await writeFile(corrected, rejects.replaceAll('x'.repeat(40), 'mobile'));
  for (const number of [3, 1]) expect((await adtally(number, 'replay', id, corrected)).code).toBe(0);
  expect(await total('replay')).toEqual({ events: 300, campaigns: 300, ad_units: 300 });
  expect((await adtally(3, 'rejects', id, '--csv')).stdout.trim().split('\n')).toHaveLength(1);
  const shown = await adtally(2, 'loads', 'show', id, '--json');
  expect(JSON.parse(shown.stdout)).toMatchObject([{ rows: 297, rejected_rows: 3, rejected_open: 0 }]);
  expect((await adtally(2, 'loads', '--json')).stdout).toContain(id);
  await expectVerified();
});

it('a chunk that the engine has forgotten is withdrawn from every shard and counted once', async () => {
  const events = impressions('forgotten', 300);
  await load(test.store, events, 60_000);
  const chunks = await select<{ chunk: string }>(
    test.store,
    "SELECT DISTINCT chunk FROM events WHERE startsWith(event_id, 'forgotten')",
  );
  const list = chunks.map(({ chunk }) => `'${chunk}'`).join();
  await mutate(
    `ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE chunk IN (${list})`,
  );
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05' AND startsWith(event_id, 'forgotten')");
  await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
  await test.store.command({
    query:
      "INSERT INTO loads (load_id, kind, finished_at, state) SELECT 'later', 'rebuild', now64(3) + 1, 'loaded'",
  });
  await expect(rebuildRollups(test.store, catalog)).rejects.toThrow(/was interrupted/);
  expect(await load(node(2), events, 60_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await total('forgotten')).toEqual({ events: 300, campaigns: 300, ad_units: 300 });
  expect(await load(node(3), events, 60_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
  await expectVerified();
});

it('rollups that lost something on one shard are found and rebuilt', async () => {
  await load(test.store, impressions('rebuild', 300));
  await test.shards[1]?.command({ query: 'TRUNCATE TABLE campaigns_device_date' });
  await test.shards[2]?.command({ query: 'TRUNCATE TABLE ad_units_device_site_date' });
  const tables = new Set((await verifyRollups(test.store, catalog)).differences.map(({ table }) => table));
  expect([...tables].sort()).toEqual(['ad_units_device_site_date', 'campaigns_device_date']);
  expect(await rebuildRollups(node(2), catalog)).toEqual({ months: 2, rollups: 8 });
  expect(await total('rebuild')).toEqual({ events: 300, campaigns: 300, ad_units: 300 });
  await expectVerified();
});
