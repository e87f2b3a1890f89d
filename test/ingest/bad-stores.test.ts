import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { embedded } from '../support/compiled.ts';
import { event, ndjson } from '../support/events.ts';
import { openGate } from '../support/gate.ts';
import { useCommands } from '../support/process.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
const commands = useCommands();
const folder = mkdtempSync(join(tmpdir(), 'adtally-stores-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A file of so many events of an account. */
function eventsFile(account: string, count: number): string {
  const path = join(folder, `${account}.ndjson`);
  writeFileSync(path, ndjson(Array.from({ length: count }, () => event({ advertiser_id: account }))));
  return path;
}

async function counted(store: Store, account: string): Promise<number> {
  expect(await verifyRollups(store, catalog)).toEqual({ differences: [], more: false });
  const query = 'SELECT toUInt32(count()) AS events FROM events WHERE advertiser_id = {account:String}';
  const [row] = await select<{ events: number }>(store, query, { account });
  return row?.events ?? -1;
}

/** Waits for a chunk to be loaded and another to come. */
const underWay = (store: Store) =>
  vi.waitFor(
    async () => {
      const query = 'SELECT uniqExactIf(chunk, toUInt64(loaded_at) > 0) > 1 AS under_way FROM load_chunks';
      expect(await select(store, query)).toEqual([{ under_way: 1 }]);
    },
    { timeout: 60_000, interval: 20 },
  );

test('a load rides through the end and the restart of the embedded ClickHouse', async () => {
  const dataDir = join(folder, 'data');
  const lease = await (await embedded()).acquireEmbedded(dataDir);
  const address = { url: lease.url, user: 'default', password: '', database: 'adtally' };
  await migrate(address);
  const store = connect(address);
  try {
    const path = eventsFile('restarted', 20_000);
    const load = commands.start(['ingest', 'events', '--chunk-bytes', '100000', path], { DATA_DIR: dataDir });
    await underWay(store);
    process.kill(JSON.parse(readFileSync(join(dataDir, 'clickhouse.json'), 'utf8')).pid, 'SIGKILL');
    const { code, stderr } = await load.ended;
    expect(code, stderr).toBe(0);
    expect(await counted(store, 'restarted')).toBe(20_000);
  } finally {
    await store.close();
    await lease.release();
  }
});

function through(url: string): Record<string, string> {
  const { user, password, database } = db.address;
  return {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  };
}

test('a load says that ClickHouse is gone, waits for it, and completes exactly once it is back', async () => {
  const way = await openGate(db.address.url);
  try {
    const args = ['ingest', 'events', '--chunk-bytes', '100000', eventsFile('cut-off', 20_000)];
    const load = commands.start(args, through(way.url));
    await underWay(db.store);
    way.close();
    await load.said(/retrying for two minutes/);
    await way.open();
    const { code, stderr } = await load.ended;
    expect(code, stderr).toBe(0);
    expect(await counted(db.store, 'cut-off')).toBe(20_000);
  } finally {
    way.close();
  }
});

test('a ClickHouse that is not there when a load begins is named', async () => {
  const way = await openGate(db.address.url);
  way.close();
  const { code, stderr } = await commands.run(['ingest', 'events', eventsFile('early', 1)], through(way.url));
  expect(code).toBe(1);
  expect(stderr).toMatch(/ECONNREFUSED 127\.0\.0\.1:\d+/);
});

test('a DATA_DIR that cannot be written is named', async () => {
  const taken = join(folder, 'taken');
  writeFileSync(taken, 'a file');
  const dataDir = join(taken, 'data');
  const path = eventsFile('nowhere', 1);
  const { code, stderr } = await commands.run(['ingest', 'events', path], { DATA_DIR: dataDir });
  expect(code).toBe(1);
  expect(stderr).toContain(`DATA_DIR ${dataDir} cannot be created or written: `);
});
