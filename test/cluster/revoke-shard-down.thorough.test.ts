import { expect, it } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { createToken, listTokens, revokeTokens } from '../../src/accounts/tokens.ts';
import { useCluster } from '../support/cluster.ts';
import { addressOf, useClusterStore } from '../support/store.ts';

const cluster = useCluster(2);
const test = useClusterStore(cluster);

it('a leaked token ends on the nodes that are up while another is down, and the command says where it did not', async () => {
  const [up, down] = cluster.nodes;
  if (!up || !down) throw new Error('there are two nodes');
  const [first, second] = [up, down].map((node) => connect(addressOf(node, test.address.database)));
  if (!first || !second) throw new Error('there are two clients');
  const valid = async (store: typeof first) =>
    (await listTokens(store, { account: 'leaky' })).filter(({ revoked }) => revoked === null).length;
  try {
    await createToken(first, { account: 'leaky', label: '' });
    expect([await valid(first), await valid(second)]).toEqual([1, 1]);
    await down.kill();
    // The embedded ClickHouse that asks may end with its peer; it is started again.
    const refusal = () =>
      revokeTokens(first, { account: 'leaky' }).then(
        () => 'revoked',
        (error: Error) => error.message,
      );
    await expect
      .poll(refusal, { timeout: 120_000, interval: 500 })
      .toMatch(/^not revoked on 127\.0\.0\.1:\d+; repeat the command when all nodes respond$/);
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
