import { expect, it, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrateCluster } from '../../clickhouse/migrate/migrate-cluster.ts';
import { withdrawChunks } from '../../ingest/delivery/withdraw-chunks.ts';
import { listSignOuts, signOutEverywhere } from '../../src/accounts/sign-outs.ts';
import { agree, listAnswers, storeSchedule, unsubscribe } from '../../src/schedules/schedules.ts';
import { useCluster } from '../support/cluster.ts';
import { event, ndjson } from '../support/events.ts';
import { dailySchedule } from '../support/mails.ts';
import { environmentOf, listening, outputOf, postJson, useCommands } from '../support/process.ts';
import { serverUsers } from '../support/server-users.ts';
import { addressOf } from '../support/store.ts';

/** The users of docker-compose.cluster.yml. */
const cluster = useCluster(2, { secret: 'of the cluster', more: serverUsers });
const commands = useCommands();

it('the users of docker-compose can do on a cluster what they have to, and the service only reads', async () => {
  const [first, second] = cluster.nodes.map((node) => addressOf(node, 'adtally'));
  if (!first || !second) throw new Error('there are two nodes');
  const loader = { ...first, user: 'adtally', password: 'ADTALLY_PASSWORD' };
  const reporter = { ...second, user: 'reporter', password: 'REPORTER_PASSWORD' };
  const namesReader = { user: 'names', password: 'NAMES_PASSWORD' };
  await migrateCluster(loader, cluster.name, undefined, { renewDictionaries: true, names: namesReader });
  const mistyped = { ...namesReader, password: 'mistyped' };
  await expect(
    migrateCluster(loader, cluster.name, undefined, { renewDictionaries: true, names: mistyped }),
  ).rejects.toThrow(
    /^127\.0\.0\.1:\d+: dictionaries cannot read names as the user names, so they stay as they are: /,
  );
  const events = Array.from({ length: 40 }, (_, n) => event({ advertiser_id: `a${n % 8}`, spend: '1' }));
  const loaded = await commands.run(
    ['ingest', 'events', '--format', 'ndjson', '-'],
    environmentOf(loader),
    ndjson(events),
  );
  expect(loaded.code, loaded.stderr).toBe(0);
  const names = 'account_id,campaign_id,name\na1,campaign,Named\n';
  const named = await commands.run(
    ['ingest', 'campaigns', '--format', 'csv', '-'],
    environmentOf(loader),
    names,
  );
  expect(named.code, named.stderr).toBe(0);
  for (const args of [
    ['confirm', 'a1', '--from', '2026-03-01', '--to', '2026-03-31'],
    ['place', 'a2', '1', '2'],
    ['grow'],
  ]) {
    await outputOf(commands.run(args, environmentOf(loader)));
  }
  const store = connect(loader);
  const people = connect({ ...first, user: 'sessions', password: 'SESSIONS_PASSWORD' });
  try {
    expect(await checkSchema(store, catalog)).toEqual([]);
    await rebuildRollups(store, catalog);
    expect((await verifyRollups(store, catalog)).differences).toEqual([]);
    await withdrawChunks(store, ['nobody']);
    const both = 'DATABASE adtally, DATABASE adtally_shard';
    await store.command({ query: `BACKUP ${both} TO File('of-a-node')` });
    const server = connect({ ...loader, database: 'default' });
    for (const database of ['adtally', 'adtally_shard']) {
      await server.command({ query: `DROP DATABASE ${database} SYNC` });
    }
    await server.command({ query: `RESTORE ${both} FROM File('of-a-node')` });
    await server.close();
    await signOutEverywhere(people, 'anna');
    await agree(people, 'account a1', 'anna@example.com', store);
    await unsubscribe(people, 'account a1', 'anna@example.com', store);
    for (const node of [first, second]) {
      const at = connect({ ...loader, url: node.url });
      expect(await listSignOuts(at)).toMatchObject([{ person: 'anna' }]);
      await at.close();
    }
    expect(
      (await listAnswers(store, ['account a1'])).get('account a1')?.get('anna@example.com'),
    ).toMatchObject({
      since: undefined,
    });
    // A mail that is due, so that the metric of mails has a time.
    const since = new Date(Date.now() - 3 * 86_400_000);
    await storeSchedule(people, { ...dailySchedule('a1'), since }, store);
  } finally {
    await Promise.all([store.close(), people.close()]);
  }
  const service = commands.start(['serve'], { ...environmentOf(reporter), PORT: '0' });
  const url = await listening(service);
  const explanations: (() => Promise<unknown>)[] = [];
  const comparisons: (() => Promise<unknown>)[] = [];
  for (const account of ['a0', 'a1', 'a2', 'a3']) {
    const token = (await commands.run(['token', 'create', account], environmentOf(loader))).stdout.trim();
    const ask = async (path: string, more = {}) => {
      const response = await postJson(`${url}/v1/campaigns/${path}`, token, {
        start_time: '2026-03-01',
        end_time: '2026-03-31',
        ...more,
      });
      return response.json();
    };
    expect(await ask('breakdowns/date'), account).toMatchObject({
      result: { rows: [{ campaign: account === 'a1' ? 'Named' : 'campaign', impressions: 5 }] },
    });
    explanations.push(() => ask('explain', { row: {} }));
    comparisons.push(async () => {
      const response = await fetch(`${url}/v1/campaigns/reconcile`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'text/csv' },
        body: 'day,campaign_id,impressions\n2026-03-01,campaign,3\n',
      });
      return response.json();
    });
  }
  // The log waits a moment for the number of rows.
  const [, line = ''] = await service.said(/^(.*"msg":"answered".*)$/m);
  expect(JSON.parse(line)).toMatchObject({ status: 200, rows: 1 });
  for (const explained of explanations) {
    expect(await explained()).toMatchObject({ result: { parts: [{ kind: 'events', events: 5 }] } });
  }
  for (const comparison of comparisons) {
    expect(await comparison()).toMatchObject({
      result: { figures: { impressions: { ours: '5', theirs: '3' } } },
    });
  }
  // Nothing that the service reads was denied to it, figures for metrics included.
  const figures = async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^adtally_chunks_in_doubt 0$/m);
    expect(metrics).toMatch(/^adtally_clickhouse_memory_bytes \d/m);
    expect(metrics).not.toMatch(/^adtally_(?!last_load)\w+ Nan$/im);
  };
  // They are read once a minute.
  await vi.waitFor(figures, { timeout: 100_000, interval: 1_000 });
  const { stderr: logged } = await service.kill('SIGTERM');
  const errors = logged.split('\n').filter((text) => /"level":[56]0/.test(text));
  expect(errors).toEqual([]);
  await expectDenied(reporter, [
    'SELECT event_id FROM adtally.events',
    'SELECT event_id FROM adtally_shard.events',
    'SELECT raw FROM adtally.rejected_rows',
    'SELECT content FROM adtally.load_chunks',
    'SELECT path FROM system.disks',
    'SELECT count() FROM adtally.campaigns',
    'SELECT query FROM system.query_log',
  ]);
  await expectDenied({ ...first, ...namesReader }, [
    'SELECT count() FROM adtally.tokens',
    'SELECT count() FROM adtally.campaigns_date',
    "INSERT INTO adtally.campaigns (account_id) VALUES ('a1')",
  ]);
  const { code, stderr } = await commands.run(['token', 'create', 'a0'], environmentOf(reporter));
  expect([code, stderr]).toEqual([1, expect.stringContaining('Not enough privileges')]);
});

async function expectDenied(user: Address, statements: readonly string[]): Promise<void> {
  const store = connect(user);
  try {
    for (const query of statements) {
      await expect(store.command({ query }), `${user.user}: ${query}`).rejects.toThrow(
        /Not enough privileges|readonly/,
      );
    }
  } finally {
    await store.close();
  }
}
