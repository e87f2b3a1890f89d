import { beforeAll, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { eventColumns } from '../../catalog/events.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { growCluster } from '../../clickhouse/placement/place-account.ts';
import { writeSettings } from '../../clickhouse/settings.ts';
import { layoutFollowsWithinMs } from '../../clickhouse/timings.ts';
import { unload } from '../../ingest/history/unload.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { replay } from '../../ingest/replay/replay.ts';
import { issueToken, listTokens, revokeTokens } from '../../src/accounts/tokens.ts';
import { AccountPlacements } from '../../src/http/report/account-placements.ts';
import { listSchedules, type StoredSchedule, storeSchedule } from '../../src/schedules/schedules.ts';
import { events, expectRecount, homes } from '../support/accounts.ts';
import { useCluster } from '../support/cluster.ts';
import { load, loadRows } from '../support/events.ts';
import { dailySchedule } from '../support/mails.ts';
import { Oracle } from '../support/oracle.ts';
import { now, useRejectedLoads } from '../support/rejected-loads.ts';
import { useService } from '../support/service.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

const cluster = useCluster(4, { known: 3 });
const test = useClusterStore(cluster);
const service = useService(test);
const oracle = new Oracle();
const [old, young] = ['old', 'new'].map((age) => Array.from({ length: 12 }, (_, n) => `${age}-${n}`));

// What is there before the shard is added. Three of four hashes have another remainder by four than by three.
const rejects = useRejectedLoads(test);
const rejected: { account: string; load: string }[] = [];
const schedules: StoredSchedule[] = [];
beforeAll(async () => {
  for (let n = 0; n < 8; n++) {
    const account = `rejected-${n}`;
    rejects.own.account = account;
    rejected.push({ account, load: (await rejects.loadWithRejects(5)).load });
    schedules.push({ ...dailySchedule(account), id: `schedule-${n}` });
  }
  for (const schedule of schedules) await storeSchedule(test.store, schedule);
  await issueToken(test.store, { account: 'revoked', label: 'of before' });
});

/** How long after its last migration a node has copied what the others have. */
async function copiedAfterMs(node: Store): Promise<number | undefined> {
  await node.command({ query: 'SYSTEM FLUSH LOGS' });
  const [copied] = await select<{ afterMs: number }>(
    node,
    `SELECT toFloat64(min(event_time_microseconds) - (SELECT max(applied_at) FROM migrations)) * 1000 AS afterMs
     FROM system.query_log WHERE type = 'QueryStart' AND startsWith(query, 'INSERT INTO campaigns SELECT')`,
  );
  return copied?.afterMs;
}

const homeIn = (placements: AccountPlacements) => placements.routingOf('any')?.cluster?.home;

it('a shard that is added takes accounts that are new; those with rows stay, and every report stays right', async () => {
  const before = events(old ?? [], 600);
  await load(test.store, before);
  oracle.load(before);
  const names = ['old-1', 'old-2', 'old-3'].map(
    (account) => [account, 'campaign-1', 'Named before'] as const,
  );
  await loadRows(test.store, 'campaigns', names);
  oracle.name('campaigns', names);
  await expectRecount(service, oracle, ['old-1']);
  const homesBefore = await homes(test.store);

  await cluster.resize(4);
  expect(await migrateCluster(test.store.address, cluster.name)).toContain('0001_events');
  expect(await checkSchema(test.store, catalog)).toEqual([]);
  const { database } = test.store.address;
  const [fourth] = cluster.nodes.slice(3).map((node) => connect(addressOf(node, database)));
  if (!fourth) throw new Error('there are four nodes');
  const placements = new AccountPlacements({ store: fourth, onError: () => {} });
  try {
    const named = 'SELECT toUInt32(count()) AS names FROM campaigns FINAL';
    expect(await select(fourth, named)).toEqual([{ names: 3 }]);
    expect(await copiedAfterMs(fourth)).toBeGreaterThan(layoutFollowsWithinMs);
    // As if it had been killed before it was done with copying.
    await fourth.command({
      query: "ALTER TABLE campaigns DELETE WHERE account_id != 'old-1'",
      clickhouse_settings: { mutations_sync: '2' },
    });
    expect(await migrateCluster(test.store.address, cluster.name)).toEqual([]);
    expect(await select(fourth, named)).toEqual([{ names: 3 }]);
    await placements.start();
    expect(homeIn(placements)).toContain(', 3)');
    expect(await growCluster(test.store, catalog)).toMatchObject({ from: 3, to: 4 });
    expect(homeIn(placements)).toContain(', 4)');
    // As if it had been killed before it was done with the last node.
    await writeSettings(fourth, { timezone: 'UTC', cluster: cluster.name, shards: 3, firstShards: 3 });
    expect(await checkSchema(test.store, catalog)).toEqual([
      expect.stringMatching(/: settings: .*"shards":3.*, but .*"shards":4.*: repeat adtally grow/),
    ]);
    expect(await growCluster(test.store, catalog)).toEqual({ from: 4, to: 4, accounts: 0 });
    const after = events([...(young ?? []), ...(old ?? [])], 1_200, 50_000);
    await load(fourth, after);
    oracle.load(after);
    const homesAfter = await homes(test.store);
    for (const [account, shard] of homesBefore) expect(homesAfter.get(account), account).toBe(shard);
    expect(new Set(homesAfter.values())).toEqual(new Set([1, 2, 3, 4]));
    expect(await checkSchema(test.store, catalog)).toEqual([]);
    expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
    await expectRecount(service, oracle, [...(old ?? []).slice(0, 2), ...(young ?? []).slice(0, 2)]);
  } finally {
    placements.stop();
    await fourth.close();
  }
});

it('what was there before the shard is changed where it is: rows are replayed once, a removed schedule is gone', async () => {
  for (const { account, load } of rejected) {
    rejects.own.account = account;
    const path = await rejects.corrected(load, 'csv', () => 1);
    const replayAll = () => replay(test.store, load, new LocalFile(path), now);
    expect(await replayAll(), account).toMatchObject({ replayed: 1, skipped: 0 });
    expect(await replayAll(), account).toMatchObject({ replayed: 0, skipped: 1 });
    expect(await rejects.counted(), account).toMatchObject({ events: 5, ids: 5, impressions: 5 });
  }
  for (const schedule of schedules) await storeSchedule(test.store, { ...schedule, state: 'removed' });
  expect(await listSchedules(test.store)).toEqual([]);
});

it('a process that ran before the shard was added takes back what is there, and a token it revokes is revoked there', async () => {
  const accounts = Array.from({ length: 12 }, (_, n) => `taken-${n}`);
  const { loadId = '' } = await load(test.store, events(accounts, 240));
  const whereTaken = async () => {
    const rows = await select<{ shard: number }>(
      test.store,
      `SELECT DISTINCT _shard_num AS shard FROM campaigns_date WHERE startsWith(account_id, 'taken-') ORDER BY shard`,
    );
    return rows.map(({ shard }) => shard);
  };
  expect(await whereTaken()).toEqual([1, 2, 3, 4]);
  expect(await unload(test.store, loadId, now)).toMatchObject({ events: 240 });
  expect(await whereTaken()).toEqual([]);

  await issueToken(test.store, { account: 'revoked', label: 'of since' });
  expect(await revokeTokens(test.store, { account: 'revoked' })).toHaveLength(2);
  for (const node of cluster.nodes) {
    const client = connect(addressOf(node, test.store.address.database));
    const tokens = await listTokens(client, { account: 'revoked' }).finally(() => client.close());
    expect(tokens.map(({ label, revoked }) => [label, revoked !== null])).toEqual([
      ['of before', true],
      ['of since', true],
    ]);
  }
});

it('a store of one machine is moved by copying what it has read, and everything adds up again', async () => {
  const accounts = Array.from({ length: 9 }, (_, n) => `moved-${n}`);
  const old = addressOf(test.store.address, `${test.store.address.database}_old`);
  await migrate(old);
  const single = connect(old);
  try {
    const lines = events(accounts, 900, 90_000);
    await load(single, lines, 50_000);
    oracle.load(lines);
    const columns = [...eventColumns, 'chunk', 'loaded_at'].join(', ');
    await test.store.command({
      query: `INSERT INTO events (${columns}) SELECT ${columns} FROM ${old.database}.events`,
    });
    for (const table of ['loads', 'load_chunks', 'rejected_rows', 'confirmations']) {
      await test.store.command({ query: `INSERT INTO ${table} SELECT * FROM ${old.database}.${table}` });
    }
    expect((await verifyRollups(test.store, catalog)).differences).not.toEqual([]);
    await rebuildRollups(test.store, catalog);
    expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
    await expectRecount(service, oracle, accounts.slice(0, 3));
    expect(await load(test.store, lines, 50_000)).toMatchObject({ rows: 0, repeatedRows: 900 });
    await single.command({ query: `DROP DATABASE ${old.database} SYNC` });
  } finally {
    await single.close();
  }
});
