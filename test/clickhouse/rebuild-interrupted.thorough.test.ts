import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { embedded, fileOf } from '../support/compiled.ts';
import { startProcess } from '../support/process.ts';
import { testSeed as seed, seededRandom, testRounds } from '../support/random.ts';
import { all, content, emptyBeforeEach, generate, run, staging } from '../support/rebuilt.ts';
import { createMigrated, useStore } from '../support/store.ts';

const db = useStore();
emptyBeforeEach(db);
const random = seededRandom(seed);

test(`a rebuild that is killed at any point can be repeated (seed ${seed})`, async () => {
  await generate(db.store, 20_000);
  const before = await content(db.store);
  const start = (last = Number.POSITIVE_INFINITY, delayMs = 0) =>
    startProcess(process.execPath, ['--input-type=module', '-e', script], {
      ADDRESS: JSON.stringify(db.address),
      LAST: String(last),
      DELAY_MS: String(delayMs),
    });
  const whole = start();
  expect(await whole.ended).toMatchObject({ code: 0 });
  const statements = Number((await whole.said(/^(\d+) statements$/m))[1]);

  const rounds = testRounds(5);
  for (let round = 0; round < rounds; round++) {
    const table = all[round % all.length]?.table;
    await run(db.store, `ALTER TABLE ${table} DELETE WHERE cityHash64(account_id, day) % 2 = 0`, {
      mutations_sync: '2',
    });
    const last = 1 + Math.floor((statements * (round + random())) / rounds);
    const killed = await start(last, 20 * random()).ended;
    expect(killed, `at statement ${last} of ${statements}`).toMatchObject({ signal: 'SIGKILL' });
    await rebuildRollups(db.store, catalog);
    expect(await content(db.store)).toEqual(before);
    expect(await staging(db.store)).toEqual([]);
  }
});

test(`a server that is killed while a rollup is exchanged comes back with whole rollups (seed ${seed})`, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'adtally-killed-'));
  const withServer = async (work: (store: Store, pid: number) => Promise<void>) => {
    const lease = await (await embedded()).acquireEmbedded(dataDir);
    const store = connect({ ...lease.address, database: 'killed' });
    const { pid } = JSON.parse(await readFile(join(dataDir, 'clickhouse.json'), 'utf8'));
    await work(store, pid).finally(() => store.close());
    await lease.release();
  };
  try {
    let before: unknown[] = [];
    await withServer(async (store) => {
      await createMigrated(store.address);
      await generate(store, 20_000);
      before = await content(store);
    });
    // While the first, the last and others between are exchanged.
    for (const round of [0, 1 + Math.floor(random() * (all.length - 2)), all.length - 1]) {
      await withServer(async (store, pid) => {
        expect(await content(store), `round ${round}`).toEqual(before);
        const killing = Object.create(store);
        let exchanges = 0;
        killing.command = async (params: { query: string }) => {
          const exchanged = store.command(params);
          if (/REPLACE PARTITION|EXCHANGE/.test(params.query) && exchanges++ === round) {
            await Promise.race([exchanged, delay(4 * random())]).catch(() => {});
            process.kill(pid, 'SIGKILL');
          }
          return exchanged;
        };
        await expect(rebuildRollups(killing, catalog)).rejects.toThrow();
      });
    }
    await withServer(async (store) => {
      expect(await content(store)).toEqual(before);
      await rebuildRollups(store, catalog);
      expect(await staging(store)).toEqual([]);
      // Views still feed the rollups that took the place of others.
      await generate(store, 20_000);
      expect((await verifyRollups(store, catalog)).differences).toEqual([]);
    });
  } finally {
    await rm(dataDir, { recursive: true });
  }
});

/** Rebuilds, and kills itself while statement LAST runs, or as soon as it has answered. */
const script = `
  const { setTimeout: delay } = await import('node:timers/promises');
  const { connect } = await import('${fileOf('clickhouse/client')}');
  const { rebuildRollups } = await import('${fileOf('clickhouse/consistency/rebuild-rollups')}');
  const { catalog } = await import('${fileOf('catalog/catalog')}');
  const store = connect(JSON.parse(process.env.ADDRESS));
  const { LAST, DELAY_MS } = process.env;
  const counting = Object.create(store);
  let statements = 0;
  for (const name of ['command', 'query']) {
    counting[name] = async (params) => {
      const sent = store[name](params);
      if (++statements === Number(LAST)) {
        await Promise.race([sent, delay(Number(DELAY_MS))]);
        process.kill(process.pid, 'SIGKILL');
      }
      return sent;
    };
  }
  await rebuildRollups(counting, catalog);
  console.log(statements + ' statements');
  await store.close();
`;
