import { expect, it } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { requestLimits } from '../../src/accounts/own-settings.ts';
import { hashToken, listTokens, newToken, revokeTokens } from '../../src/accounts/tokens.ts';
import { useCluster } from '../support/cluster.ts';
import { useService } from '../support/service.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

const cluster = useCluster(2);
const test = useClusterStore(cluster);
const service = useService(test);

const statusWith = async (token: string) =>
  (await service.post('/v1/campaigns', 'usual', {}, { authorization: `Bearer ${token}` })).status;

it('a row that only one node has, from a clock that is ahead, is replaced on all nodes, whichever is asked', async () => {
  const [first, second] = cluster.nodes.map((node) => connect(addressOf(node, test.address.database)));
  if (!first || !second) throw new Error('there are two nodes');
  try {
    const usual = await service.token('usual');
    const token = newToken();
    await second.command({
      query: `INSERT INTO tokens (id, account_id, hash, label, created_at, version)
              SELECT 'ahead', 'ahead', {hash:String}, '', now64(3), now64(6) + INTERVAL 10 MINUTE`,
      query_params: { hash: hashToken(token) },
    });
    await second.command({
      query:
        "INSERT INTO account_limits (account_id, requests, version) SELECT 'ahead', 7, now64(6) + INTERVAL 10 MINUTE",
    });
    await expect.poll(() => statusWith(token), { timeout: 5_000 }).toBe(400);
    expect(await statusWith(usual)).toBe(400);
    expect(await revokeTokens(first, { account: 'ahead' })).toEqual(['ahead']);
    expect(await revokeTokens(first, { account: 'usual' })).toHaveLength(1);
    await requestLimits.set(first, 'ahead', 9);
    for (const node of [first, second]) {
      expect((await listTokens(node)).filter(({ revoked }) => revoked === null)).toEqual([]);
      expect(await requestLimits.list(node)).toMatchObject([{ account: 'ahead', value: 9 }]);
    }
    const statuses = () => Promise.all([token, usual].map(statusWith));
    await expect.poll(statuses, { timeout: 5_000 }).toEqual([401, 401]);
  } finally {
    await Promise.all([first.close(), second.close()]);
  }
});
