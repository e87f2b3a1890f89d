import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { connect, select } from '../../clickhouse/client.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { Links } from '../../src/accounts/links.ts';
import { createToken, listTokens, revokeTokens } from '../../src/accounts/tokens.ts';
import { revokeToken } from '../../src/operations/access.ts';
import { perform } from '../../src/operations/operation.ts';
import { expectRecount, homes, useRecounted, year } from '../support/accounts.ts';
import { useCluster } from '../support/cluster.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, load, ndjson } from '../support/events.ts';
import { environmentOf, listening, postJson, useCommands } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const run = useCommandRunners();

describe('what an operator sees', () => {
  const db = useClusterStore(cluster);
  const accounts = Array.from({ length: 30 }, (_, n) => `account-${n}`);

  it('status counts what all shards have', async () => {
    await load(db.store, [
      ...accounts.map((account) =>
        event({ advertiser_id: account, publisher_id: account, spend: '1', revenue: '1' }),
      ),
      event({ event_time: 'never' }),
    ]);
    for (const account of accounts.slice(0, 10))
      await confirmDays(db.store, account, '2026-03-01', '2026-03-31');
    const { code, stdout, stderr } = await run(['status', '--json'], {
      ...environmentOf(db.address),
      CLICKHOUSE_CLUSTER: cluster.name,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      migrations: [],
      data: {
        events: 30,
        open: { rejectedRows: 1, chunksInDoubt: 0, unconfirmedDays: 40 },
        loads: { failed: 0, running: 0 },
      },
    });
  });

  it('with a shard down status, loads, rejects and audit say what the others know and which one is missing; a load fails and goes on later', async () => {
    const env = { ...environmentOf(db.address), CLICKHOUSE_CLUSTER: cluster.name };
    const last = cluster.nodes.at(-1);
    const query = "SELECT load_id AS load FROM loads FINAL WHERE kind = 'events'";
    const [{ load } = { load: '' }] = await select<{ load: string }>(db.store, query);
    const folder = mkdtempSync(join(tmpdir(), 'adtally-shard-down-'));
    const file = join(folder, 'events.ndjson');
    const ingest = () => run(['ingest', 'events', file], env);
    writeFileSync(file, ndjson(accounts.map((account) => event({ advertiser_id: account }))));
    await last?.kill();
    try {
      // It tries for two minutes.
      const loading = ingest();
      for (const command of [
        ['status', '--json'],
        ['loads', '--json'],
        ['rejects', '--json'],
        ['audit', '--json'],
      ]) {
        const { code, stdout, stderr } = await run(command, env);
        expect({ command, code }).toEqual({ command, code: 1 });
        expect(stderr).toMatch(/shard 3 \(\S+\) cannot be reached: what is stored there is missing/);
        if (command[0] !== 'status') continue;
        const { events } = JSON.parse(stdout).data;
        expect(events).toBeGreaterThan(0);
        expect(events).toBeLessThan(30);
      }
      // What needs all shards does nothing.
      for (const command of [['verify'], ['unload', load]]) {
        const { code, stderr } = await run(command, env);
        expect({ command, code }).toEqual({ command, code: 1 });
        expect(stderr).toMatch(/^error: shard 3 \(\S+\) cannot be reached\. Start ClickHouse there/);
      }
      const { code, stderr } = await loading;
      expect(code).toBe(1);
      expect(stderr).toMatch(/shard 3 \(\S+\) cannot be reached: start ClickHouse there first\n$/);
    } finally {
      await last?.restart();
      await cluster.answers();
    }
    expect(await ingest()).toMatchObject({ code: 0 });
    expect(await select(db.store, 'SELECT toUInt32(count()) AS events FROM events')).toEqual([
      { events: 60 },
    ]);
    rmSync(folder, { recursive: true });
  });
});

describe('tokens', () => {
  const test = useClusterStore(cluster);

  it('a leaked token ends on the nodes that are up while another is down, and the command says where it did not', async () => {
    const [up, down] = cluster.nodes;
    if (!up || !down) throw new Error('there are three nodes');
    const [first, second] = [up, down].map((node) => connect(addressOf(node, test.address.database)));
    if (!first || !second) throw new Error('there are two clients');
    const valid = async (store: typeof first) =>
      (await listTokens(store, { account: 'leaky' })).filter(({ revoked }) => revoked === null).length;
    try {
      await createToken(first, { account: 'leaky', label: '' });
      expect([await valid(first), await valid(second)]).toEqual([1, 1]);
      await down.kill();
      const asked = {
        store: first,
        by: { who: 'on call' },
        links: new Links(() => undefined),
        answerTrustMs: 0,
      };
      await expect(perform(revokeToken, asked, { account: 'leaky' })).rejects.toThrow(
        /^not revoked on 127\.0\.0\.1:\d+; repeat the command when all nodes respond$/,
      );
      expect(await valid(first)).toBe(0);
      await down.restart();
      await cluster.answers();
      expect(await valid(second)).toBe(1);
      expect(await revokeTokens(first, { account: 'leaky' })).toHaveLength(1);
      expect([await valid(first), await valid(second)]).toEqual([0, 0]);
    } finally {
      await Promise.all([first.close(), second.close()]);
    }
  });
});

describe('reports', () => {
  const test = useClusterStore(cluster);
  const service = useService(test);
  const commands = useCommands();
  const { accounts, oracle } = useRecounted(test);

  const post = async (base: string, path: string, account: string): Promise<Response> =>
    postJson(`${base}${path}`, await service.token(account), { start_time: year.start, end_time: year.end });

  it('with a shard down the accounts of the others are served and its own get a 500, never some rows', async () => {
    const home = await homes(test.store);
    // Tokens are made before: every node keeps them.
    for (const account of accounts) await service.token(account);
    const third = cluster.nodes.at(-1);
    await third?.kill();
    try {
      const env = { ...environmentOf(test.address), PORT: '0' };
      const started = commands.start(['serve'], env);
      for (const base of [service.url, await listening(started)]) {
        for (const account of accounts) {
          for (const path of ['/v1/campaigns', '/v1/ad_units/breakdowns/device_site_date']) {
            const response = await post(base, path, account);
            const { status } = response;
            const body = await response.text();
            if (home.get(account) === 3) {
              expect([status, JSON.parse(body).code], account).toEqual([500, 'store_unavailable']);
              expect(body).not.toContain('rows');
            } else expect([status, body.includes('"rows":[{')], account).toEqual([200, true]);
          }
        }
      }
      // What is on shards that are up is still kept.
      for (const account of accounts.filter((each) => home.get(each) !== 3).slice(0, 4)) {
        const isKept = async () => {
          await post(service.url, '/v1/campaigns', account);
          const again = await post(service.url, '/v1/campaigns', account);
          expect(again.headers.get('cache-status'), account).toBe('adtally; hit');
        };
        await vi.waitFor(isKept, { timeout: 60_000, interval: 200 });
      }
      await started.kill('SIGTERM');
      await expect(createToken(test.store, { account: 'late', label: '' })).rejects.toThrow(/refused/);
    } finally {
      await third?.restart();
      await cluster.answers();
    }
    await expectRecount(service, oracle, accounts.slice(0, 2));
  });
});
