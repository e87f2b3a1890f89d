import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { embedded } from '../support/compiled.ts';
import { expectFollowersToKeepUp } from '../support/follower-suite.ts';
import { testSeed } from '../support/random.ts';
import { type TestStore, useStore } from '../support/store.ts';

/** `TEST_ROUNDS=200 npx vitest run --mode thorough test/report/follower.thorough.test.ts`; TEST_SHARDS=3: on a cluster. */
const rounds = Number(process.env.TEST_ROUNDS ?? 14);

if (Number(process.env.TEST_SHARDS ?? 1) > 1) {
  expectFollowersToKeepUp(useStore(), { seed: testSeed, rounds });
} else {
  describe('on an engine of its own', () => {
    let lease: EmbeddedLease | undefined;
    let store: Store | undefined;
    let folder = '';
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'adtally-followed-'));
      lease = await (await embedded()).acquireEmbedded(join(folder, 'data'));
      const address = { ...lease.address, database: 'adtally' };
      await migrate(address);
      store = connect(address);
    });
    afterAll(async () => {
      await store?.close();
      await lease?.release();
      await rm(folder, { recursive: true, force: true, maxRetries: 20 });
    });
    const opened = (): Store => {
      if (!store) throw new Error('the store is there from beforeAll on');
      return store;
    };
    const db: TestStore = {
      get address() {
        return opened().address;
      },
      get store() {
        return opened();
      },
      get shards() {
        return [opened()];
      },
    };
    const killEngine = async () => {
      const { pid } = JSON.parse(readFileSync(join(folder, 'data', 'clickhouse.json'), 'utf8'));
      process.kill(pid, 'SIGKILL');
      await retrying(() => select(opened(), 'SELECT 1'));
    };
    expectFollowersToKeepUp(db, { seed: testSeed, rounds, killEngine });
  });
}
