import { appendFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { writeLoads } from '../../ingest/load/load-history.ts';
import { type EventLine, event, ndjson } from '../support/events.ts';
import { heldAt } from '../support/held.ts';
import { done, useLoader } from '../support/loader.ts';
import type { Command } from '../support/process.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
let account: string;
let home: string;
const {
  file,
  start: begin,
  counted: countedEvents,
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

/** Events of the current account; what the rollups say must agree with all that is stored. */
async function counted(): Promise<number> {
  expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
  return countedEvents();
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

test.each([
  ['other lines', 50_000, ''],
  ['the same lines of a file that has grown since', 1 << 20, 'more lines'],
])('two loaders at once that would cut a file at %s count each event once', async (_, chunkBytes, more) => {
  const path = await file('e.ndjson', ndjson(events(1_000)));
  // The first has cut its first chunk, and nobody knows where.
  const first = heldAt(db.store, /INTO load_chunks/);
  const options = { file: path, now: () => new Date() };
  const loads = [loadEvents({ ...options, store: first.store, chunkBytes: 1 << 20 })];
  await first.reached;
  if (more) await appendFile(path, ndjson(events(500)));
  const waits = vi.fn();
  loads.push(loadEvents({ ...options, store: db.store, chunkBytes, onWait: waits }));
  await until(() => expect(waits).toHaveBeenCalledOnce());
  first.release();
  const [one, other] = await Promise.all(loads);
  expect(one).toMatchObject({ rows: 1_000, repeatedRows: 0 });
  expect(other).toMatchObject({ rows: more ? 500 : 0, repeatedRows: 1_000 });
  expect(await counted()).toBe(more ? 1_500 : 1_000);
});

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

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s finishes the chunks in flight, says how to go on, and the same command completes',
  async (signal) => {
    const path = await file('e.ndjson', ndjson(events(20_000)));
    const args = ['ingest', 'events', '--json', '--chunk-bytes', '60000', path];
    const stopped = start(...args);
    await until(async () => expect((await chunks()).loaded).toBeGreaterThan(1));
    const { code, stdout, stderr } = await stopped.kill(signal);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/Rows already loaded are kept; run the same command again to continue/);
    const before = await counted();
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(20_000);

    expect(await done(start(...args))).toMatchObject({ rows: 20_000 - before, repeated_rows: before });
    expect(await counted()).toBe(20_000);
  },
);
