import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { createLayout } from '../../clickhouse/cluster/layout.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { exchangeMonths, newStaging } from '../../clickhouse/consistency/replace-months.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { all, content, emptyBeforeEach, generate, ofEach, run, staging } from '../support/rebuilt.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
emptyBeforeEach(db);

test('a rebuild that fails leaves the rollups as they are and nothing behind', async () => {
  await generate(db.store, 1_000);
  const before = await content(db.store);
  const failing = db.store.command.bind(db.store);
  for (const [at, statement] of ['CREATE', 'INSERT', 'EXCHANGE'].entries()) {
    let seen = 0;
    const store = Object.create(db.store);
    store.command = (params: { query: string }) =>
      params.query.startsWith(statement) && ++seen > at
        ? failing({ ...params, query: `${params.query} broken` })
        : failing(params);
    await expect(rebuildRollups(store, catalog)).rejects.toThrow();
    expect(await content(db.store)).toEqual(before);
    expect(await staging(db.store)).toEqual([]);
  }
});

test('a rebuild that fails leaves alone what another one has staged since, and the next one removes it', async () => {
  await generate(db.store, 1_000);
  const table = 'rebuild_campaigns_date_of_another';
  const store = Object.create(db.store);
  store.command = async (params: { query: string }) => {
    if (!params.query.startsWith('EXCHANGE')) return db.store.command(params);
    await run(db.store, `CREATE TABLE ${table} AS campaigns_date`);
    throw new Error('another load has gone ahead');
  };
  await expect(rebuildRollups(store, catalog)).rejects.toThrow('gone ahead');
  expect(await staging(db.store)).toEqual([{ name: table }]);
  await rebuildRollups(db.store, catalog);
  expect(await staging(db.store)).toEqual([]);
});

test('days that a rebuild has changed are told, also where it ends behind its exchange', async () => {
  await generate(db.store, 1_000);
  await run(db.store, "ALTER TABLE campaigns_date DELETE WHERE account_id = 'a1' AND day = '2026-01-05'", {
    mutations_sync: '2',
  });
  const [began] = await select<{ at: string }>(db.store, 'SELECT toString(now64(6)) AS at');
  const changed = () =>
    select(
      db.store,
      'SELECT account_id, toString(day) AS day FROM campaigns_changes AS c FINAL WHERE c.changed_at >= {at:String}',
      { ...began },
    );
  const store = Object.create(db.store);
  store.command = async (params: { query: string }) => {
    await db.store.command(params);
    if (params.query.startsWith('EXCHANGE') && params.query.endsWith(` ${all.at(-1)?.table}`))
      throw new Error('killed');
  };
  await expect(rebuildRollups(store, catalog)).rejects.toThrow('killed');
  expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
  await rebuildRollups(db.store, catalog);
  expect(await changed()).toEqual([{ account_id: 'a1', day: '2026-01-05' }]);
});

test('a rebuild of a month reads nothing of others', async () => {
  await generate(db.store, 1_000);
  const [at] = await select<{ began: string }>(db.store, 'SELECT toString(now64(6)) AS began');
  await rebuildRollups(db.store, catalog, { from: '2026-02-03', to: '2026-02-03' });
  await run(db.store, 'SYSTEM FLUSH LOGS query_log');
  const ofMonth = ['events', ...all.map(({ table }) => table)].map(
    (table) => `(SELECT count() FROM ${table} WHERE toYYYYMM(day) = 202602)`,
  );
  const [read] = await select<{ most: number; rows: number }>(
    db.store,
    `SELECT toUInt32(max(read_rows)) AS most, toUInt32(${ofMonth.join(' + ')}) AS rows FROM system.query_log
     WHERE type = 'QueryFinish' AND is_initial_query AND current_database = currentDatabase()
       AND event_time_microseconds > toDateTime64({began:String}, 6)`,
    { ...at },
  );
  // Both months have more than twice as many.
  expect(read?.most).toBeLessThan((read?.rows ?? 0) * 1.5);
});

test('months stay as they are on a replica that has not filled what replaces them', async () => {
  await generate(db.store, 1_000);
  const before = await content(db.store);
  const { database } = db.address;
  const nodes = [1, 2].map((replica) => ({ shard: 1, replica, host: `${replica}:9000`, weight: 1 }));
  const layout = createLayout({ cluster: 'ads', nodes, sharding: { database, shards: 1, firstShards: 1 } });
  const shard = { store: db.store, part: { number: 1, layout } };
  const january = { month: 202601, from: '2026-01-01', to: '2026-01-31' };
  const exchanged = exchangeMonths(shard, 'campaigns_date', [january], newStaging()('campaigns_date'));
  await expect(exchanged).rejects.toThrow(/^this replica lacks .*: run the same command again$/);
  expect(await content(db.store)).toEqual(before);
});

test('a reader never sees a part of a month, and a rebuild of right rollups changes nothing', async () => {
  await generate(db.store, 200_000);
  const before = await content(db.store);
  const sums = () =>
    ofEach(
      db.store,
      (table) =>
        `SELECT count() AS n, toString(sum(impressions)) AS s
         FROM (SELECT account_id, day, sum(r.impressions) AS impressions FROM ${table} AS r GROUP BY ALL)`,
    );
  const expected = await sums();
  let done = false;
  const rebuilding = rebuildRollups(db.store, catalog).finally(() => {
    done = true;
  });
  const seen: unknown[] = [];
  while (!done) seen.push(await sums());
  await rebuilding;
  for (const each of seen) expect(each).toEqual(expected);
  expect(seen.length).toBeGreaterThan(5);
  expect(await content(db.store)).toEqual(before);
  expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
});
