import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseSettings } from '@clickhouse/client';
import { beforeEach, expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { startProcess } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const testStore = useStore();
const all = rollups(catalog);

beforeEach(async () => {
  const tables = ['events', 'loads', 'load_chunks', ...all.map(({ table }) => table)];
  for (const table of tables) await run(`TRUNCATE TABLE ${table}`);
});

test('a rebuild that fails leaves the rollups as they are and nothing behind', async () => {
  await generate(1_000);
  const before = await content();
  const failing = testStore.store.command.bind(testStore.store);
  for (const [at, statement] of ['CREATE', 'INSERT', 'EXCHANGE'].entries()) {
    let seen = 0;
    const store = Object.create(testStore.store);
    store.command = (params: { query: string }) =>
      params.query.startsWith(statement) && ++seen > at
        ? failing({ ...params, query: `${params.query} broken` })
        : failing(params);
    await expect(rebuildRollups(store, catalog)).rejects.toThrow();
    expect(await content()).toEqual(before);
    expect(await staging()).toEqual([]);
  }
});

test('a reader never sees a part of a month, and a rebuild of right rollups changes nothing', async () => {
  await generate(500_000);
  const before = await content();
  const sums = () =>
    ofEach(
      (table) =>
        `SELECT count() AS n, toString(sum(impressions)) AS s
         FROM (SELECT account_id, day, sum(r.impressions) AS impressions FROM ${table} AS r GROUP BY ALL)`,
    );
  const expected = await sums();
  let done = false;
  const rebuilding = rebuildRollups(testStore.store, catalog).finally(() => {
    done = true;
  });
  const seen: unknown[] = [];
  while (!done) seen.push(await sums());
  await rebuilding;
  for (const each of seen) expect(each).toEqual(expected);
  expect(seen.length).toBeGreaterThan(5);
  expect(await content()).toEqual(before);
  expect((await verifyRollups(testStore.store, catalog)).differences).toEqual([]);
});

test('a rebuild that is killed at any point can be repeated', { timeout: 180_000 }, async () => {
  await generate(20_000);
  const before = await content();
  const start = () =>
    startProcess(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      ADDRESS: JSON.stringify(testStore.address),
    });
  const whole = start();
  await whole.said(/ready/);
  const started = performance.now();
  expect(await whole.ended).toMatchObject({ code: 0 });
  const durationMs = performance.now() - started;

  let cutOff = 0;
  for (let round = 0; round < 10; round++) {
    const table = all[round % all.length]?.table;
    await run(`ALTER TABLE ${table} DELETE WHERE cityHash64(account_id, day) % 2 = 0`, {
      mutations_sync: '2',
    });
    const rebuilding = start();
    await rebuilding.said(/ready/);
    await delay(durationMs * ((round + Math.random()) / 11));
    if ((await rebuilding.kill('SIGKILL')).signal === 'SIGKILL') cutOff++;
    await rebuildRollups(testStore.store, catalog);
    expect(await content()).toEqual(before);
    expect(await staging()).toEqual([]);
  }
  expect(cutOff).toBeGreaterThan(4);
});

test('a server that is killed while a rollup is exchanged comes back with whole rollups', {
  timeout: 180_000,
}, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'adtally-killed-'));
  const withServer = async (work: (store: Store, pid: number) => Promise<void>) => {
    const lease = await acquireEmbedded(dataDir);
    const address = { url: lease.url, user: 'default', password: '', database: 'killed' };
    await migrate(address);
    const store = connect(address);
    const { pid } = JSON.parse(await readFile(join(dataDir, 'clickhouse.json'), 'utf8'));
    await work(store, pid).finally(() => store.close());
    await lease.release();
  };
  try {
    let before: unknown[] = [];
    await withServer(async (store) => {
      await generate(20_000, store);
      before = await content(store);
    });
    for (let round = 0; round < all.length; round++) {
      await withServer(async (store, pid) => {
        expect(await content(store), `round ${round}`).toEqual(before);
        const killing = Object.create(store);
        let exchanges = 0;
        killing.command = async (params: { query: string }) => {
          const exchanged = store.command(params);
          if (/REPLACE PARTITION|EXCHANGE/.test(params.query) && exchanges++ === round) {
            await Promise.race([exchanged, delay(4 * Math.random())]).catch(() => {});
            process.kill(pid, 'SIGKILL');
          }
          return exchanged;
        };
        await expect(rebuildRollups(killing, catalog)).rejects.toThrow();
      });
    }
    await withServer(async (store) => {
      expect(await content(store)).toEqual(before);
      await rebuildRollups(store, catalog);
      expect(await staging(store)).toEqual([]);
      // Views still feed the rollups that took the place of others.
      await generate(20_000, store);
      expect((await verifyRollups(store, catalog)).differences).toEqual([]);
    });
  } finally {
    await rm(dataDir, { recursive: true });
  }
});

const script = `
  const { connect } = await import('./clickhouse/client.ts');
  const { rebuildRollups } = await import('./clickhouse/consistency/rebuild-rollups.ts');
  const { catalog } = await import('./catalog/catalog.ts');
  const store = connect(JSON.parse(process.env.ADDRESS));
  console.log('ready');
  await rebuildRollups(store, catalog);
  await store.close();
`;

/** Events of January and February 2026, made in the store. */
async function generate(events: number, store = testStore.store): Promise<void> {
  await run(
    `INSERT INTO events (event_id, event_time, event_type, advertiser_id, campaign_id, creative_id,
       publisher_id, ad_unit_id, site_id, device, spend, revenue, confirmed)
     SELECT toString(number), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + cityHash64(number) % (59 * 86400),
       ['impression', 'referral', 'conversion', 'ad_request', 'revenue'][1 + number % 5],
       concat('a', toString(number % 7)), concat('c', toString(number % 11)), concat('x', toString(number % 13)),
       concat('p', toString(number % 3)), concat('u', toString(number % 17)), concat('s', toString(number % 5)),
       ['desktop', 'mobile', 'tablet'][1 + number % 3], 0.000001 * (number % 100), 0.01, number % 2
     FROM numbers(${events})`,
    {},
    store,
  );
}

/** A fingerprint of every rollup. */
function content(store = testStore.store): Promise<unknown[]> {
  return ofEach(
    (table) => `SELECT count() AS n, toString(sum(cityHash64(*))) AS h FROM ${table} FINAL`,
    store,
  );
}

function ofEach(query: (table: string) => string, store = testStore.store): Promise<unknown[]> {
  const queries = all.map(({ table }) => `SELECT '${table}' AS t, * FROM (${query(table)})`);
  return select(store, `SELECT * FROM (${queries.join(' UNION ALL ')}) ORDER BY t`);
}

function staging(store = testStore.store): Promise<unknown[]> {
  return select(
    store,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'rebuild_')",
  );
}

async function run(query: string, settings: ClickHouseSettings = {}, store = testStore.store): Promise<void> {
  await store.command({ query, clickhouse_settings: settings });
}
