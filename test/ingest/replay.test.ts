import { readFile } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import { replay } from '../../ingest/rejects/replay.ts';
import { heldAt } from '../support/held.ts';
import { now, replayedAs, useRejectedLoads } from '../support/rejected-loads.ts';
import { onEveryShard, useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
const loads = useRejectedLoads(db);
const { file, run, loadWithRejects, corrected, totals } = loads;

replayedAs(loads, 'csv');

test('two different replays of one load at once count each row once, as one or the other corrected it', async () => {
  const { load } = await loadWithRejects(50);
  const first = await corrected(load, 'ndjson', (row) => (row < 7 ? 3 : 0), 'first');
  const second = await corrected(load, 'ndjson', (row) => (row < 3 ? 0 : 5), 'second');
  const held = heldAt(db.store, /INSERT INTO rejected_rows/);
  const replaying = replay(held.store, load, first, now);
  await held.reached;
  const waits = vi.fn();
  const other = replay(db.store, load, second, now, { onWait: waits });
  await vi.waitFor(() => expect(waits).toHaveBeenCalled(), { timeout: 10_000 });
  held.release();
  expect(await replaying).toMatchObject({ replayed: 7, skipped: 0 });
  expect(await other).toMatchObject({ replayed: 3, skipped: 7 });
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 40 + 7 * 3 + 3 * 5 });
});

test('a replay of which only a part was marked is not replayed again', async () => {
  const { load } = await loadWithRejects(50);
  const path = await corrected(load, 'csv', () => 3);
  expect((await run('replay', load, path)).code).toBe(0);
  const unmark =
    'ALTER TABLE rejected_rows UPDATE replayed_at = toDateTime64(0, 3) WHERE load_id = {load:String} AND line > 20';
  await onEveryShard(db, unmark, { load });
  expect(await run('replay', load, path)).toMatchObject({
    stderr: expect.stringMatching(/^0 rows replayed, 10/),
  });
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 70 });
});

test('a correction is judged as the file was: exit code 4, and it stays rejected', async () => {
  const { load } = await loadWithRejects(50);
  const path = await corrected(load, 'ndjson', () => 3);
  const lines = (await readFile(path, 'utf8')).split('\n');
  const early = lines[0]?.replace(/"event_time":"[^"]*"/, '"event_time":"1971-01-01T00:00:00+05:00"') ?? '';
  const changed = await file('early.ndjson', [early, ...lines.slice(1)].join('\n'));
  const { code, stderr } = await run('replay', load, changed);
  expect(code, stderr).toBe(4);
  expect(stderr).toMatch(/event_time must be between 1971 and 2149, not "1971-01-01T00:00:00\+05:00"/);
  expect(stderr).toContain('9 rows replayed, 1 still faulty');
  expect(await totals()).toMatchObject({ events: 49 });
});

test('rows that were replayed stay so when the file is loaded again by a loader that knows nothing of it', async () => {
  const { path, load } = await loadWithRejects(50);
  expect((await run('replay', load, await corrected(load, 'csv', () => 3))).code).toBe(0);
  // As after a crash between keeping the rejected rows and marking their chunk as loaded.
  await onEveryShard(db, 'ALTER TABLE load_chunks DELETE WHERE 1');
  await run('ingest', 'events', path);
  expect((await run('rejects', '--json')).stdout).not.toContain(loads.account);
  expect(await totals()).toEqual({ events: 50, ids: 50, impressions: 70 });
});

test.each([
  ['events.csv', 'event_id,quantity\na,1\n'],
  ['events.ndjson', '{"event_id":"a","quantity":1}\n'],
  ['broken.csv', 'chunk,line\n"never closed'],
  ['broken.ndjson', '{"chunk":'],
  ['list.ndjson', '[]'],
])('%s, which is no export, is refused', async (name, content) => {
  const { load } = await loadWithRejects(5);
  const path = await file(name, content);
  const { code, stderr } = await run('replay', load, path);
  expect(code).toBe(1);
  expect(stderr).toContain(`${path}: is not a corrected export`);
  expect(await totals()).toMatchObject({ events: 4 });
});

test('a load that does not exist is named', async () => {
  const { code, stderr } = await run('replay', 'nowhere', await file('e.csv', 'chunk,line\n'));
  expect(code).toBe(1);
  expect(stderr).toMatch(/there is no load nowhere/);
});
