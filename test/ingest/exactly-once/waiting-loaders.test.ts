import { execFileSync } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { claimChunk, type SendableClaim } from '../../../ingest/delivery/chunk-claims.ts';
import { markLoaded } from '../../../ingest/delivery/chunk-outcome.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { ndjson } from '../../support/events.ts';
import { done, useLoader } from '../../support/loader.ts';
import { onlyChunk } from '../../support/only-chunk.ts';
import type { Command } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { own, counted, events: made, file, start: begin, killAll } = useLoader(db);
afterEach(killAll);

const start = (...args: string[]): Command => begin(args);
const until = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: 60_000, interval: 20 });

/** Lines of events of this test. */
const events = (count: number): string => ndjson(made(count));

/** A loader of a pipe into which its lines are still to be written: it runs as long as the test wants. */
async function loadOfPipe(): Promise<{ loader: Command; finish(lines: string): Promise<void> }> {
  const pipe = join(own.home, 'pipe.ndjson');
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

test.each(['loads it', 'fails'])(
  'another loader of what begins alike is waited for until that one %s',
  async (outcome) => {
    const path = await file('e.ndjson', events(50));
    const chunk = await onlyChunk(path);
    const other = await Load.begin(db.store, { kind: 'events', file: path, lock: chunk.head }, new Date());
    const ledger = { store: db.store };
    const claim = await claimChunk(ledger, other, chunk);
    expect(claim).toMatchObject({ how: 'send' });
    const loader = start('ingest', 'events', '--json', path);
    await loader.said(new RegExp(`waiting for load ${other.id}`));
    expect(await counted()).toBe(0);

    if (outcome === 'loads it')
      await markLoaded(ledger, other, {
        chunk,
        rows: chunk.rows,
        rejectedRows: 0,
        duplicates: 0,
        leftOut: 0,
      });
    await (outcome === 'fails' ? other.fail(new Error('for a test')) : other.finish());
    const rows = outcome === 'fails' ? 50 : 0;
    expect(await done(loader)).toMatchObject({ rows, repeated_rows: 50 - rows });
    expect(await counted()).toBe(rows);
    // Where what the other one has sent arrives after all, no row must differ from what is there.
    const times = 'SELECT DISTINCT toString(loaded_at) AS loadTime FROM events WHERE chunk = {chunk:String}';
    const { loadTime } = claim as SendableClaim;
    expect(await select(db.store, times, { chunk: chunk.id })).toEqual(rows > 0 ? [{ loadTime }] : []);
  },
);

test('a rebuild waits for a load that runs', async () => {
  const { loader, finish } = await loadOfPipe();
  const running =
    "SELECT count() AS loads FROM loads WHERE startsWith(file, {home:String}) AND state = 'running'";
  await until(async () =>
    expect(await select(db.store, running, { home: own.home })).not.toEqual([{ loads: 0 }]),
  );
  const rebuild = start('rebuild');
  await rebuild.said(/waiting for load \d+-\w+/);
  await finish(events(500));
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
  const stopsAtOnce = async (loader: Command) => {
    const { code, stderr } = await loader.kill('SIGINT');
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/error: stopped. Rows already loaded are kept; run the same command again/);
    expect(await counted()).toBe(0);
  };

  test('for more of its input', async () => {
    const loader = begin(['ingest', 'events', '-'], 'stays open');
    const running = "SELECT count() AS loads FROM loads FINAL WHERE file = '-' AND pid = {pid:UInt32}";
    await until(async () =>
      expect(await select(db.store, running, { pid: loader.pid })).toEqual([{ loads: 1 }]),
    );
    await stopsAtOnce(loader);
  });

  test('for a rebuild', async () => {
    const rebuild = await Load.begin(db.store, { kind: 'rebuild', file: 'rollups' }, new Date());
    const loader = start('ingest', 'events', await file('e.ndjson', events(5)));
    await loader.said(/waiting for load/);
    await stopsAtOnce(loader).finally(() => rebuild.finish());
  });

  test('for another load of what begins alike', async () => {
    const path = await file('e.ndjson', events(50));
    const lock = (await onlyChunk(path)).head;
    const other = await Load.begin(db.store, { kind: 'events', file: 'other', lock }, new Date());
    const loader = start('ingest', 'events', path);
    await loader.said(new RegExp(`waiting for load ${other.id}`));
    await stopsAtOnce(loader).finally(() => other.finish());
  });
});

test('a load waits for a rebuild that runs', async () => {
  const rebuild = await Load.begin(db.store, { kind: 'rebuild', file: 'rollups' }, new Date());
  const loader = start('ingest', 'events', '--json', await file('e.ndjson', events(500)));
  await loader.said(new RegExp(`waiting for load ${rebuild.id}`));
  expect(await counted()).toBe(0);
  await rebuild.finish();
  expect(await done(loader)).toMatchObject({ rows: 500 });
  expect(await counted()).toBe(500);
});

test('a load that fails does not wait for more of its input', async () => {
  const pipe = join(own.home, 'pipe.ndjson');
  execFileSync('mkfifo', [pipe]);
  const loader = start('ingest', 'events', '--max-rejects', '0', '--chunk-bytes', '150000', pipe);
  const end = await open(pipe, 'w');
  await end.write(events(1_000).replaceAll('"impression"', '"click"'));
  const { code, stderr } = await loader.ended;
  await end.close();
  expect(code).toBe(1);
  expect(stderr).toMatch(/more than 0 rows are faulty/);
});

test('a load that the store has not heard of waits for a rebuild that went on without it', async () => {
  const load = await Load.begin(db.store, { kind: 'events', file: 'silent' }, new Date());
  // As one that took the load for dead.
  const word = (state: string) =>
    db.store.command({
      query: `INSERT INTO loads (load_id, kind, state, turn, host, pid)
              SELECT 'other', 'rebuild', {state:String}, now64(6), 'elsewhere', 1`,
      query_params: { state },
    });
  await word('running');
  await load.requeueIfLapsed({}, 0);
  load.assertTurnHeld();

  const later = performance.now() + 11_000;
  const clock = vi.spyOn(performance, 'now').mockReturnValue(later);
  expect(load.heartbeatLapsedSince(later - 1)).toBe(true);
  expect(() => load.assertTurnHeld()).toThrow(
    /load .* could not record a heartbeat .* run the same command again/,
  );
  const waits = vi.fn();
  const turn = load.requeueIfLapsed({ onWait: waits }, 0).then(() => 'kept');
  await until(() => expect(waits).toHaveBeenCalledWith('other'));
  await word('loaded');
  expect(await turn).toBe('kept');
  clock.mockReturnValue(later + 1);
  load.assertTurnHeld();
  clock.mockRestore();
  await load.finish();
});

test('a load knows that others may have taken it for dead where each of its heartbeats is stored late', async () => {
  let late = 0;
  const clock = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => clock() + late);
  let takesMs = 0;
  const slow: typeof db.store = Object.create(db.store);
  slow.exec = (async (params: Parameters<typeof db.store.exec>[0]) => {
    const result = await db.store.exec(params);
    late += takesMs;
    return result;
  }) as typeof db.store.exec;
  const load = await Load.begin(slow, { kind: 'events', file: 'late' }, new Date());
  const begun = performance.now();
  takesMs = 7_500;
  for (let beats = 0; beats < 2; beats++) await load.replays('');
  expect(load.heartbeatLapsedSince(begun)).toBe(true);
  spy.mockRestore();
  await load.finish();
});
