import { execFileSync } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { select } from '../clickhouse/client.ts';
import { verify } from '../clickhouse/verify.ts';
import { formatOf } from '../ingest/formats.ts';
import { writeLoads } from '../ingest/history.ts';
import { Ledger } from '../ingest/ledger.ts';
import { Load } from '../ingest/loads.ts';
import { chunksOf, type SendableChunk } from '../ingest/sources.ts';
import { catalog } from '../src/catalog.ts';
import { type EventLine, event, ndjson } from './setup/events.ts';
import { useLoader } from './setup/loader.ts';
import type { Command } from './setup/process.ts';
import { useStore } from './setup/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
let account: string;
let home: string;
const {
  file,
  start: begin,
  killAll,
} = useLoader(db, (own) => {
  ({ account, home } = own);
});
afterEach(killAll);

function events(count: number): EventLine[] {
  return Array.from({ length: count }, (_, n) =>
    event({
      advertiser_id: account,
      spend: `0.${n % 10}`,
      event_time: `2026-0${1 + (n % 3)}-1${n % 9}T12:00:00Z`,
    }),
  );
}

const start = (...args: string[]): Command => begin(args);

interface Loaded {
  readonly rows: number;
  readonly repeated_rows: number;
}

/** What a load came to; it must have gone well. */
async function done(command: Command): Promise<Loaded> {
  const { code, stdout, stderr } = await command.ended;
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

/** Events of the current account; what the rollups say must agree with all that is stored. */
async function counted(): Promise<number> {
  expect(await verify(db.store, catalog)).toEqual({ differences: [], more: false });
  const query = 'SELECT toUInt32(count()) AS events FROM events WHERE advertiser_id = {account:String}';
  const [row] = await select<{ events: number }>(db.store, query, { account });
  return row?.events ?? -1;
}

/** Chunks of the newest load: how many it has claimed, how many are loaded. */
async function chunks(): Promise<{ claimed: number; loaded: number }> {
  const [row] = await select<{ claimed: number; loaded: number }>(
    db.store,
    `SELECT toUInt32(uniqExact(chunk)) AS claimed, toUInt32(uniqExactIf(chunk, toUInt64(loaded_at) > 0)) AS loaded
     FROM load_chunks WHERE load_id = (SELECT max(load_id) FROM loads WHERE startsWith(file, {home:String}))`,
    { home },
  );
  return row ?? { claimed: 0, loaded: 0 };
}

const until = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** A loader of a pipe into which its lines are still to be written: it runs as long as the test wants. */
async function loadOfPipe(): Promise<{ loader: Command; finish(lines: string): Promise<void> }> {
  const pipe = join(home, 'pipe.ndjson');
  execFileSync('mkfifo', [pipe]);
  const loader = start('ingest', 'events', '--json', pipe);
  const end = await open(pipe, 'w');
  return {
    loader,
    finish: async (lines) => {
      await end.writeFile(lines);
      await end.close();
    },
  };
}

async function onlyChunk(path: string): Promise<SendableChunk> {
  const source = {
    file: path,
    fileFormat: formatOf(path),
    chunkBytes: 64 << 20,
    parallel: 2,
    ignoreUnknown: false,
  };
  for await (const chunk of chunksOf({ ...source, knownChunks: async () => [], onBytes: () => {} }))
    return chunk;
  throw new Error(`${path} is empty`);
}

test.each(['the same order', 'opposite orders'])(
  'two loaders of the same ten files, in %s, count each event once',
  async (order) => {
    const files = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        n % 2
          ? file(`${n}.ndjson`, ndjson(events(600)))
          : file(`${n}.ndjson.gz`, gzipSync(ndjson(events(600)))),
      ),
    );
    const others = order === 'the same order' ? files : files.toReversed();
    const options = ['ingest', 'events', '--json', '--chunk-bytes', '60000'];
    const loads = await Promise.all([done(start(...options, ...files)), done(start(...options, ...others))]);
    expect(await counted()).toBe(6_000);
    expect(loads.reduce((sum, { rows }) => sum + rows, 0)).toBe(6_000);
    for (const { rows, repeated_rows } of loads) expect(rows + repeated_rows).toBe(6_000);
  },
);

test('a killed load is taken over at once on the same machine, and is dead in the history', async () => {
  const lines = ndjson(events(30_000));
  const path = await file('e.ndjson', lines);
  const killed = start('ingest', 'events', path);
  await until(async () => expect((await chunks()).claimed).toBe(1));
  await killed.kill('SIGKILL');

  const { rows, repeated_rows } = await done(start('ingest', 'events', '--json', path));
  expect(rows + repeated_rows).toBe(30_000);
  const heartbeat = 'SELECT now64(6) - max(version) < 15 AS fresh FROM loads WHERE pid = {pid:UInt32}';
  expect(await select(db.store, heartbeat, { pid: killed.pid })).toEqual([{ fresh: 1 }]);
  expect(await counted()).toBe(30_000);

  const history = async () => {
    const out = new PassThrough();
    const [listed] = await Promise.all([
      text(out),
      writeLoads(db.store, out, 'ndjson', 50).then(() => out.end()),
    ]);
    return listed.split('\n').find((line) => line.includes(`:${killed.pid}"`));
  };
  expect(await history()).toContain('"state":"running"');
  await until(async () => expect(await history()).toContain('"state":"dead"'));
});

test.each(['loads it', 'fails'])(
  'a chunk that another loader has claimed is waited for until that one %s',
  async (outcome) => {
    const path = await file('e.ndjson', ndjson(events(50)));
    const chunk = await onlyChunk(path);
    const other = await Load.begin(db.store, { kind: 'events', file: path }, new Date());
    const ledger = new Ledger(db.store);
    expect(await ledger.claim(other, chunk)).toMatchObject({ loaded: false });
    const loader = start('ingest', 'events', '--json', path);
    const claims = 'SELECT uniqExact(load_id) AS loads FROM load_chunks WHERE chunk = {chunk:String}';
    await until(async () =>
      expect(await select(db.store, claims, { chunk: chunk.chunk })).toEqual([{ loads: 2 }]),
    );
    expect(await counted()).toBe(0);

    if (outcome === 'loads it') await ledger.markLoaded(other, chunk, chunk.rows, 0);
    await (outcome === 'fails' ? other.fail(new Error('for a test')) : other.finish());
    const rows = outcome === 'fails' ? 50 : 0;
    expect(await done(loader)).toMatchObject({ rows, repeated_rows: 50 - rows });
    expect(await counted()).toBe(rows);
  },
);

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s finishes the chunks in flight, says how to go on, and the same command completes',
  async (signal) => {
    const path = await file('e.ndjson', ndjson(events(20_000)));
    const args = ['ingest', 'events', '--json', '--chunk-bytes', '60000', path];
    const stopped = start(...args);
    await until(async () => expect((await chunks()).loaded).toBeGreaterThan(1));
    const { code, stdout, stderr } = await stopped.kill(signal);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/What is loaded stays loaded; the same command goes on where this one stopped/);
    const before = await counted();
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(20_000);

    expect(await done(start(...args))).toMatchObject({ rows: 20_000 - before, repeated_rows: before });
    expect(await counted()).toBe(20_000);
  },
);

test('a rebuild waits for a load that runs', async () => {
  const { loader, finish } = await loadOfPipe();
  const running =
    "SELECT count() AS loads FROM loads WHERE startsWith(file, {home:String}) AND state = 'running'";
  await until(async () => expect(await select(db.store, running, { home })).not.toEqual([{ loads: 0 }]));
  const rebuild = start('rebuild');
  await rebuild.said(/waiting for load \d+-\w+/);
  await finish(ndjson(events(500)));
  expect(await done(loader)).toMatchObject({ rows: 500 });
  expect(await rebuild.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/rollups rebuilt/) });
  expect(await counted()).toBe(500);
});

const hour = 3_600_000;

test.each([0, hour, -hour])('a rebuild is waited for by a load whose clock differs by %i ms', async (ms) => {
  const rebuild = await Load.begin(db.store, { kind: 'rebuild', file: 'rollups' }, new Date());
  const waits = vi.fn();
  const other = { kind: 'events', file: 'e.ndjson' } as const;
  const load = Load.begin(db.store, other, new Date(Date.now() + ms), { onWait: waits });
  await until(() => expect(waits).toHaveBeenCalledWith(rebuild.id));
  await rebuild.finish();
  await (await load).finish();
});

describe('one Ctrl-C is enough for a loader that waits', () => {
  const running = "SELECT count() AS loads FROM loads FINAL WHERE file = '-' AND pid = {pid:UInt32}";
  const claims = 'SELECT uniqExact(load_id) AS loads FROM load_chunks WHERE chunk = {chunk:String}';
  const stopsAtOnce = async (loader: Command) => {
    const { code, stderr } = await loader.kill('SIGINT');
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/error: stopped. What is loaded stays loaded; the same command goes on/);
    expect(await counted()).toBe(0);
  };

  test('for more of its input', async () => {
    const loader = begin(['ingest', 'events', '-'], 'stays open');
    await until(async () =>
      expect(await select(db.store, running, { pid: loader.pid })).toEqual([{ loads: 1 }]),
    );
    await stopsAtOnce(loader);
  });

  test('for a rebuild', async () => {
    const rebuild = await Load.begin(db.store, { kind: 'rebuild', file: 'rollups' }, new Date());
    const loader = start('ingest', 'events', await file('e.ndjson', ndjson(events(5))));
    await loader.said(/waiting for load/);
    await stopsAtOnce(loader).finally(() => rebuild.finish());
  });

  test('for a chunk of another load', async () => {
    const path = await file('e.ndjson', ndjson(events(50)));
    const chunk = await onlyChunk(path);
    const other = await Load.begin(db.store, { kind: 'events', file: 'other' }, new Date());
    await new Ledger(db.store).claim(other, chunk);
    const loader = start('ingest', 'events', path);
    const claimed = async () =>
      expect(await select(db.store, claims, { chunk: chunk.chunk })).toEqual([{ loads: 2 }]);
    await until(claimed);
    await stopsAtOnce(loader).finally(() => other.finish());
  });
});

test('a load waits for a rebuild that runs', async () => {
  const rebuild = await Load.begin(db.store, { kind: 'rebuild', file: 'rollups' }, new Date());
  const loader = start('ingest', 'events', '--json', await file('e.ndjson', ndjson(events(500))));
  await loader.said(new RegExp(`waiting for load ${rebuild.id}`));
  expect(await counted()).toBe(0);
  await rebuild.finish();
  expect(await done(loader)).toMatchObject({ rows: 500 });
  expect(await counted()).toBe(500);
});
