import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { connect, type Store, select } from '../../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../../clickhouse/embedded/embedded.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import { useCommandRunners } from '../../support/command-runners.ts';
import { embedded } from '../../support/compiled.ts';
import { event, ndjson } from '../../support/events.ts';
import { useFolder } from '../../support/folder.ts';
import { environmentOf, isAlive, outputOf, useCommands } from '../../support/process.ts';
import { createMigrated } from '../../support/store.ts';

// An engine of its own, which is killed.
const commands = useCommands();
const run = useCommandRunners();
const folder = useFolder();
let lease: EmbeddedLease;
let env: Record<string, string>;
let store: Store;
let made = 0;
beforeAll(async () => {
  lease = await (await embedded()).acquireEmbedded(join(folder, 'data'));
});
afterAll(async () => {
  await lease?.release();
});
afterEach(() => store.close());
/** Two events of an old day, one of now; the old ones are pruned. */
beforeEach(async () => {
  const address = { ...lease.address, database: `pruned_${++made}` };
  env = environmentOf(address);
  store = connect(address);
  await createMigrated(address);
  await done('ingest', 'events', await file([{ quantity: 100 }, { quantity: 50 }]));
  await done('ingest', 'events', await file([{ event_time: '2026-11-20T12:00:00Z' }]));
  await done('prune', '--keep', '25mo', '--anyway');
});

const adtally = (...args: string[]) => run(args, env);
const done = (...args: string[]) => outputOf(adtally(...args));

async function file(fields: readonly Parameters<typeof event>[0][]): Promise<string> {
  const path = join(folder, `${Math.random()}.ndjson`);
  const lines = fields.map((each) => event({ event_time: '2023-02-03T12:00:00Z', ...each }));
  await writeFile(path, ndjson(lines));
  return path;
}

const large = (count: number) => file(Array.from({ length: count }, () => ({})));

/** Impressions of the old day, by the coarsest and the finest rollup. */
async function impressions(): Promise<number[]> {
  const ask = async (table: string) => {
    const query = `SELECT toUInt32(sum(r.impressions)) AS sum FROM ${table} AS r WHERE day = '2023-02-03'`;
    return (await select<{ sum: number }>(store, query))[0]?.sum ?? 0;
  };
  return [await ask('campaigns_date'), await ask('ad_units_device_site_date')];
}

/** A chunk is on its way, or was a moment ago. */
async function sending(mostMs = 400): Promise<void> {
  const query = `SELECT toUInt32(count()) AS chunks FROM (
    SELECT chunk FROM load_chunks GROUP BY chunk HAVING toUInt64(max(sent_at)) > 0 AND toUInt64(max(loaded_at)) = 0)`;
  const ask = async () => (await select<{ chunks: number }>(store, query))[0]?.chunks;
  await expect.poll(ask, { timeout: 120_000, interval: 20 }).toBeGreaterThan(0);
  await delay(mostMs * Math.random());
}

/** Resolves when the engine, which is started again by itself, answers. */
async function killEngine(): Promise<void> {
  const { pid } = JSON.parse(await readFile(join(folder, 'data/clickhouse.json'), 'utf8'));
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => isAlive(pid), { timeout: 60_000, interval: 20 }).toBe(false);
  await retrying(() => select(store, 'SELECT 1'));
}

test('one load is taken back, and what was pruned of that day stays', async () => {
  await done('ingest', 'events', await file([{ quantity: 7 }]));
  const wrong = await file([{ quantity: 9 }]);
  const { loads } = JSON.parse(await done('ingest', 'events', '--json', wrong));
  expect(await impressions()).toEqual([166, 166]);
  await done('unload', loads[0]);
  expect(await impressions()).toEqual([157, 157]);
  await done('ingest', 'events', wrong);
  expect(await impressions()).toEqual([166, 166]);
  await done('verify');
});

test('rebuild and verify of a pruned month change nothing and find nothing', async () => {
  await done('verify', '--from', '2023-02-01', '--to', '2023-02-28');
  await done('rebuild', '--from', '2023-02-01', '--to', '2023-02-28');
  await done('rebuild');
  expect(await impressions()).toEqual([150, 150]);
});

test.each([
  ['one chunk', [], 400],
  ['many chunks', ['--chunk-bytes', `${1 << 20}`], 1_500],
])('a load of a pruned day in %s counts once, though the engine is killed', async (_, flags, mostMs) => {
  const path = await large(50_000);
  const loading = commands.start(['ingest', 'events', ...flags, path], env);
  await sending(mostMs);
  await killEngine();
  await loading.ended;
  for (let again = 0; again < 2; again++) {
    await done('ingest', 'events', ...flags, path);
    expect(await impressions()).toEqual([50_150, 50_150]);
  }
  await done('verify');
});

test('a loader that was killed is ended before prune folds what it has sent', async () => {
  const path = await large(50_000);
  const flags = ['--chunk-bytes', `${1 << 20}`, path];
  const loading = commands.start(['ingest', 'events', ...flags], env);
  await sending();
  await loading.kill('SIGKILL');
  const pruned = await adtally('prune', '--keep', '25mo', '--anyway');
  if (pruned.code !== 0) expect(pruned.stderr).toContain('Run its command again, or have');
  for (let again = 0; again < 2; again++) {
    await done('ingest', 'events', ...flags);
    expect(await impressions()).toEqual([50_150, 50_150]);
  }
  await done('prune', '--keep', '25mo', '--anyway');
  await done('verify');
  expect(await impressions()).toEqual([50_150, 50_150]);
});

test('prune is killed with its engine at any moment, and ended by running it again', async () => {
  await done('ingest', 'events', await large(50_000));
  for (let round = 0; round < 4; round++) {
    await done('ingest', 'events', await file([{ quantity: 1 }]));
    const expected = 50_151 + round;
    const pruning = commands.start(['prune', '--keep', '25mo', '--anyway'], env);
    await delay(600 + 2_000 * Math.random());
    if (round % 2) await pruning.kill('SIGKILL');
    else await killEngine();
    await pruning.ended;
    await done('verify');
    expect(await impressions()).toEqual([expected, expected]);
    await done('prune', '--keep', '25mo', '--anyway');
    await done('rebuild');
    expect(await impressions()).toEqual([expected, expected]);
  }
  await done('verify');
});
