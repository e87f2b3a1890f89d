import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, select } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { embedded, fileOf } from '../support/compiled.ts';
import { event, ndjson } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { adtally, makeNewer } from '../support/killed-commands.ts';
import { listening } from '../support/process.ts';

const folder = useFolder();
const dataDir = join(folder, 'data');
const current = fileOf('src/cli');
let newer: string;
/** Held until a test needs the engine to start: commands need not start one each. */
let lease: EmbeddedLease;
const run = (program: string, ...args: string[]) =>
  adtally(program, args, { DATA_DIR: dataDir, PORT: '0' }).ended;
const lacks = 'the store lacks migration 9000_made_up: run adtally migrate';

/** Definitions and rows of all tables, but for what a start of the engine changes: the password of dictionaries. */
async function everything(): Promise<unknown> {
  const store = connect({ ...lease.address, database: 'adtally' });
  try {
    const tables = await select<{ name: string; engine: string }>(
      store,
      `SELECT name, engine, create_table_query FROM system.tables
       WHERE database = 'adtally' AND engine != 'Dictionary' ORDER BY name`,
    );
    // A merge in the background changes how many rows a table has, not what FINAL reads of it.
    const isKept = ({ engine }: { engine: string }) => engine.endsWith('MergeTree');
    const counts = tables
      .filter(isKept)
      .map(
        ({ name, engine }) =>
          `SELECT '${name}' AS name, count() AS rows FROM ${name}${engine === 'MergeTree' ? '' : ' FINAL'}`,
      );
    return {
      tables,
      rows: await select(store, `SELECT * FROM (${counts.join(' UNION ALL ')}) ORDER BY name`),
    };
  } finally {
    await store.close();
  }
}

beforeAll(async () => {
  lease = await (await embedded()).acquireEmbedded(dataDir);
  newer = makeNewer();
  const file = join(folder, 'events.ndjson');
  writeFileSync(file, ndjson([event({ spend: '1' })]));
  expect((await run(current, 'ingest', 'events', file)).code).toBe(0);
});
afterAll(async () => {
  await lease.release();
  rmSync(dirname(dirname(newer)), { recursive: true, maxRetries: 20 });
});

test('a newer version looks at a store of an older one, and changes nothing', async () => {
  const before = await everything();
  for (const command of [
    'loads',
    'rejects',
    'check',
    'verify',
    'rebuild',
    'token list',
    'limit list',
    'prune --keep 3y',
    `backup ${join(folder, 'newer.tar.zst')}`,
  ]) {
    const { code, stderr } = await run(newer, ...command.split(' '));
    expect({ command, code, stderr }).toEqual({ command, code: 1, stderr: `error: ${lacks}\n` });
  }
  expect((await run(newer, 'ingest', 'events', join(folder, 'events.ndjson'))).stderr).toContain(lacks);
  const status = JSON.parse((await run(newer, 'status', '--json')).stdout);
  expect(status.migrations).toEqual(['9000_made_up']);
  expect(await everything()).toEqual(before);
});

test('a backup before the update is of the older version, which restores it', async () => {
  const backup = join(folder, 'older.tar.zst');
  const done = await run(current, 'backup', backup);
  expect(done.code, done.stderr).toBe(0);
  expect((await run(newer, 'migrate')).stderr).toContain('applied 9000_made_up');
  for (const command of [['loads'], ['serve'], ['ingest', 'events', join(folder, 'events.ndjson')]]) {
    const { code, stderr } = await run(current, ...command);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/9000_made_up.*update adtally, or go back to a backup of before/s),
    });
  }
  const { migrations, next } = JSON.parse((await run(current, 'status', '--json')).stdout);
  expect([migrations, next]).toEqual(['newer', [expect.stringContaining('update adtally')]]);
  const back = await run(current, 'restore', backup, '--replace');
  expect(back.code, back.stderr).toBe(0);
  expect((await run(current, 'verify')).code).toBe(0);
  // And the newer one brings it to its own version.
  const again = await run(newer, 'restore', backup, '--replace');
  expect(again.code, again.stderr).toBe(0);
  expect((await run(newer, 'check')).code).toBe(0);
  expect((await run(current, 'restore', backup, '--replace')).code).toBe(0);
});

test('serve migrates the embedded store, and says so', async () => {
  await lease.release();
  const service = adtally(newer, ['serve'], { DATA_DIR: dataDir, PORT: '0' });
  await listening(service);
  const { stderr } = await service.kill('SIGTERM');
  expect(stderr).toContain(`the store in ${dataDir} was migrated: 9000_made_up`);
});

test('serve and migrate say of a new store that they made its tables, and name no migration', async () => {
  const env = { DATA_DIR: join(folder, 'served'), PORT: '0' };
  const service = adtally(current, ['serve'], env);
  await listening(service);
  const served = await service.kill('SIGTERM');
  expect(served.stderr).toContain(`the tables of the store in ${env.DATA_DIR} were created\n`);
  expect(served.stderr).not.toContain('0001_');
  const migrated = await adtally(current, ['migrate'], { DATA_DIR: join(folder, 'migrated') }).ended;
  expect(migrated.stderr).toBe('the tables were created\n');
});

test('a command that looks makes no store', async () => {
  const env = { DATA_DIR: join(folder, 'none') };
  const { code, stderr } = await adtally(current, ['loads'], env).ended;
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `error: there is no store in DATA_DIR ${env.DATA_DIR}: adtally migrate makes one, and so does a load\n`,
  });
});
