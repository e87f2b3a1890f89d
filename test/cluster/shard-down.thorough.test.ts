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

const aborts = () => cluster.nodes.reduce((sum, node) => sum + node.aborts, 0);

it('with a shard down the accounts of the others are served and its own get a 500, never some rows', async () => {
  const home = await homes(test.store);
  // Tokens are made before: every node keeps them.
  for (const account of accounts) await service.token(account);
  const refused: string[] = [];
  const outcomes: string[] = [];
  const [first, second, third] = cluster.nodes;
  // All three are killed before two begin again, so that neither has a connection to the one that is gone.
  for (const node of cluster.nodes) await node.kill();
  try {
    await first?.restart();
    await second?.restart();
    const near = accounts.find((account) => home.get(account) === 2) ?? '';
    const served = async () => (await post(service.url, '/v1/campaigns', near)).status === 200;
    await vi.waitUntil(served, { timeout: 60_000, interval: 200 });
    const env = { ...environmentOf(test.address), PORT: '0' };
    const started = commands.start(['serve'], env);
    for (const base of [service.url, await listening(started)]) {
      for (const account of accounts) {
        for (const path of ['/v1/campaigns', '/v1/ad_units/breakdowns/device_site_date']) {
          const ask = async () => {
            const response = await post(base, path, account);
            return { status: response.status, body: await response.text() };
          };
          if (home.get(account) === 3) {
            const { status, body } = await ask();
            expect([status, JSON.parse(body).code], account).toEqual([500, 'store_unavailable']);
            expect(body).not.toContain('rows');
          } else {
            const { status, body } = await vi.waitFor(
              async () => {
                const answer = await ask();
                if (answer.status !== 200) refused.push(answer.body);
                expect(answer.status, account).toBe(200);
                return answer;
              },
              { timeout: 60_000, interval: 500 },
            );
            expect([status, body.includes('"rows":[{')], account).toEqual([200, true]);
          }
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
    // Where a server would go on, an embedded engine can end when its peer is gone; it is started again.
    if (aborts() === 0) expect(refused).toEqual([]);
    for (const body of refused) expect(body).not.toContain('rows');
    await started.kill('SIGTERM');
    const late = () =>
      createToken(test.store, { account: 'late', label: '' }).then(
        () => 'created',
        (error: Error) => error.message,
      );
    const noted = async () => outcomes[outcomes.push(await late()) - 1];
    await expect.poll(noted, { timeout: 60_000, interval: 500 }).toMatch(/refused/);
    expect(outcomes).not.toContain('created');
  } finally {
    await third?.restart();
    await cluster.answers();
  }
  await expectRecount(service, oracle, accounts.slice(0, 2));
});
