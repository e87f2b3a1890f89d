import { describe, it } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { loseAndRestore, whatIsRestored } from '../support/backup.ts';
import { useStore } from '../support/store.ts';

describe('a store of one node', () => {
  const test = useStore();

  it(whatIsRestored, async () => {
    const server = connect({ ...test.store.address, database: 'default' });
    await loseAndRestore(test, [server], [test.store.address.database]).finally(() => server.close());
  });
});
