import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, inject } from 'vitest';
import { type Address, connect, type Store } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate.ts';

export interface TestStore {
  readonly address: Address;
  readonly store: Store;
}

/** A migrated database of its own for the tests of one file, dropped at the end. */
export function useStore(reportTimezone?: string): TestStore {
  const database = `test_${randomBytes(6).toString('hex')}`;
  let opened: TestStore | undefined;
  beforeAll(async () => {
    const address = { ...inject('clickhouse'), database };
    await migrate(address, reportTimezone);
    opened = { address, store: connect(address) };
  });
  afterAll(async () => {
    await opened?.store.command({ query: `DROP DATABASE ${database} SYNC` });
    await opened?.store.close();
  });
  const get = (): TestStore => {
    if (!opened) throw new Error('the store is there from beforeAll on');
    return opened;
  };
  return {
    get address() {
      return get().address;
    },
    get store() {
      return get().store;
    },
  };
}
