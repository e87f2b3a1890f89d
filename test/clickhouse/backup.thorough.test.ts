import { describe, it } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { loseAndRestore, whatIsRestored } from '../support/backup.ts';
import { useCluster } from '../support/cluster.ts';
import { addressOf, useClusterStore, useStore } from '../support/store.ts';

describe('a store of one node', () => {
  const test = useStore();

  it(whatIsRestored, async () => {
    const server = connect({ ...test.store.address, database: 'default' });
    await loseAndRestore(test, [server], [test.store.address.database]).finally(() => server.close());
  });
});

describe('a store of three shards', () => {
  const cluster = useCluster(3);
  const test = useClusterStore(cluster);

  it(whatIsRestored, async () => {
    const servers = cluster.nodes.map((node) => connect(addressOf(node, 'default')));
    const { database } = test.store.address;
    await loseAndRestore(test, servers, [database, `${database}_shard`]).finally(() =>
      Promise.all(servers.map((server) => server.close())),
    );
  });
});
