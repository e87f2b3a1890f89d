import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { compileReport } from '../../src/report/compile.ts';
import { planReport, type ShardRouting } from '../../src/report/plan.ts';
import { median, ratio, runInTurn, timed } from '../harness/measure.ts';
import { account, fillRollup, range, writeEvents } from './input.ts';
import { startCluster } from './local-cluster.ts';

/**
 * Three shards against one node, all on this machine: the same reports, requested from a node that does not store the
 * account, and the same file loaded. All servers share the cores, so a load shows the cost of a cluster, not its
 * gain. `node --import tsx bench/cluster/compare.ts --events 1000000`
 */
const { events, runs } = new Command('cluster')
  .option('--events <n>', 'events to load', Number, 1_000_000)
  .option('--runs <n>', 'counted runs of each side', Number, 3)
  .parse()
  .opts<{ events: number; runs: number }>();
const shards = 3;

const folder = await mkdtemp(join(tmpdir(), 'adtally-bench-cluster-'));
const lease = await acquireEmbedded(join(folder, 'single'));
const servers = await startCluster(shards);
const single: Address = { ...lease.address, database: 'bench' };
const nodes = servers.nodes.map(({ url, user, password }) => ({
  url,
  user,
  password,
  database: single.database,
}));
const [node] = nodes;
assert(node);
const stores = { single: connect(single), cluster: connect(node) };
try {
  await migrate(single);
  await migrateCluster(node, servers.name);
  const results = await compareReports();
  const file = join(folder, 'events.ndjson');
  await writeEvents(stores.single, file, formats.ndjson.clickhouse, events);
  const load = (name: string, store: Store, urls: readonly string[]) => ({
    name,
    prepare: () => truncateTables(store, urls),
    run: () =>
      timed(async () => {
        await loadEvents({
          store,
          input: new LocalFile(file),
          now: () => new Date(),
        });
      }),
  });
  results.push(
    await compare(
      `${events} events loaded`,
      load(
        'cluster',
        stores.cluster,
        nodes.map(({ url }) => url),
      ),
      load('single', stores.single, [single.url]),
    ),
  );
  assert.deepEqual(await totals(stores.cluster), await totals(stores.single));
  console.table(results);
} finally {
  await Promise.all(Object.values(stores).map((store) => store.close()));
  await servers.stop();
  await lease.release();
  await rm(folder, { recursive: true, force: true });
}

async function compareReports() {
  await fillRollup(stores.single);
  await fillRollup(stores.cluster);
  const [home] = await select<{ shard: number }>(
    stores.cluster,
    'SELECT DISTINCT _shard_num AS shard FROM campaigns_device_creative_date',
  );
  // A node that does not store the account.
  const other = nodes[(home?.shard ?? 0) % shards];
  assert(other);
  const readers = {
    cluster: new Reader(other, 60_000),
    single: new Reader(stores.single.address, 60_000),
  };
  const read = (reader: Reader, days: typeof range, asked?: ShardRouting) => async (): Promise<string> => {
    const breakdown = { family: 'campaigns', dimensions: ['device', 'creative'], day: true };
    const plan = planReport(catalog, breakdown, account, days, asked);
    return text(await reader.stream(compileReport(plan, { lastUpdateTime: '', unconfirmedDates: [] })));
  };
  try {
    const comparisons = [];
    for (const [name, days, times] of [
      ['324,000 rows', range, 1],
      ['3,600 rows, 20 times', { start: range.start, end: range.start }, 20],
    ] as const) {
      const ours = read(readers.cluster, days, { shards: 'one', database: other.database });
      const theirs = read(readers.single, days);
      assert.equal(await ours(), await theirs());
      const side = (name: string, ask: () => Promise<string>) => ({
        name,
        run: () =>
          timed(async () => {
            for (let n = 0; n < times; n++) await ask();
          }),
      });
      comparisons.push(
        await compare(`${name}, from another shard`, side('cluster', ours), side('single', theirs)),
      );
    }
    return comparisons;
  } finally {
    readers.cluster.close();
    readers.single.close();
  }
}

type Side = Parameters<typeof runInTurn>[0][number];

async function compare(what: string, ours: Side, theirs: Side) {
  const [cluster, alone] = await runInTurn([ours, theirs], runs);
  assert(cluster && alone);
  return {
    what,
    [`${shards} shards, s`]: median(cluster.samples).toFixed(3),
    'one node, s': median(alone.samples).toFixed(3),
    'time ratio': ratio(cluster.samples, alone.samples).median.toFixed(2),
  };
}

/** Empties the tables that a load fills, on these nodes. */
async function truncateTables({ address }: Store, urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    const each = connect({ ...address, url });
    const tables = await select<{ name: string }>(
      each,
      `SELECT concat(database, '.', name) AS name FROM system.tables
       WHERE database IN ({database:String}, concat({database:String}, '_shard')) AND engine LIKE '%MergeTree'
         AND name NOT IN ('migrations', 'placements', 'settings')`,
      { database: address.database },
    );
    for (const { name } of tables) await each.command({ query: `TRUNCATE TABLE ${name}` });
    await each.close();
  }
}

/** The totals of a load. One that is fast but loses a row must not be timed. */
function totals(store: Store): Promise<unknown[]> {
  return select(
    store,
    `SELECT (SELECT count() FROM events) AS events,
            (SELECT (sum(r.impressions), sum(r.spent)) FROM campaigns_date AS r) AS campaigns,
            (SELECT (sum(r.impressions), sum(r.estimated_revenue)) FROM ad_units_date AS r) AS ad_units`,
  );
}
