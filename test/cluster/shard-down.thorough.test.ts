import { beforeAll, expect, it, vi } from 'vitest';
import { createToken } from '../../src/accounts/tokens.ts';
import { events, expectRecount, homes, year } from '../support/accounts.ts';
import { useCluster } from '../support/cluster.ts';
import { type EventLine, load } from '../support/events.ts';
import { Oracle } from '../support/oracle.ts';
import { environmentOf, listening, useCommands } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';

const cluster = useCluster(3);
const test = useClusterStore(cluster);
const service = useService(test);
const commands = useCommands();
const accounts = Array.from({ length: 12 }, (_, n) => `account-${n}`);
const oracle = new Oracle();
const loadBoth = async (some: EventLine[]) => {
  await load(test.store, some, 50_000);
  oracle.load(some);
};

beforeAll(() => loadBoth(events(accounts, 1_200)));

const post = async (base: string, path: string, account: string): Promise<Response> =>
  fetch(`${base}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await service.token(account)}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ start_time: year.start, end_time: year.end }),
  });

it('with a shard down the accounts of the others are served and its own get a 500, never some rows', async () => {
  const home = await homes(test.store);
  // Tokens are made before: every node keeps them.
  for (const account of accounts) await service.token(account);
  const [first, second, third] = cluster.nodes;
  await third?.kill();
  try {
    // An embedded engine that has a connection to a server that was killed ends some moments later, where a real one
    // only logs it: these begin again without one.
    for (const node of [first, second]) {
      await node?.kill();
      await node?.restart();
    }
    const near = accounts.find((account) => home.get(account) === 2) ?? '';
    const served = async () => (await post(service.url, '/v1/campaigns', near)).status === 200;
    await vi.waitUntil(served, { timeout: 60_000, interval: 200 });
    const env = { ...environmentOf(test.address), PORT: '0' };
    const started = commands.start(['serve'], env);
    for (const base of [service.url, await listening(started)]) {
      for (const account of accounts) {
        for (const path of ['/v1/campaigns', '/v1/ad_units/breakdowns/device_site_date']) {
          const response = await post(base, path, account);
          const body = await response.text();
          if (home.get(account) === 3) {
            expect([response.status, JSON.parse(body).code], account).toEqual([500, 'internal_error']);
            expect(body).not.toContain('rows');
          } else expect([response.status, body.includes('"rows":[{')], account).toEqual([200, true]);
        }
      }
    }
    await started.kill('SIGTERM');
    await expect(createToken(test.store, { account: 'late', label: '' })).rejects.toThrow(/refused/);
  } finally {
    await third?.restart();
    await cluster.answers();
  }
  await expectRecount(service, oracle, accounts.slice(0, 2));
});
