import { appendFile } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { ndjson } from '../../support/events.ts';
import { heldAt } from '../../support/held.ts';
import { done } from '../../support/loader.ts';
import { sameFilesAtOnce, until, useMeetingLoaders } from '../../support/meeting-loaders.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const loaders = useMeetingLoaders(db);
const { file, start, events, counted, chunks } = loaders;

sameFilesAtOnce(loaders, ['the same order'], 2);

test.each([
  ['other lines', 50_000, ''],
  ['the same lines of a file that has grown since', 1 << 20, 'more lines'],
])('two loaders at once that would cut a file at %s count each event once', async (_, chunkBytes, more) => {
  const path = await file('e.ndjson', ndjson(events(1_000)));
  // The first has cut its first chunk, and nobody knows where.
  const first = heldAt(db.store, /INTO load_chunks/);
  const options = { input: new LocalFile(path), now: () => new Date() };
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

test('a killed load is taken over at once on the same machine', async () => {
  const lines = ndjson(events(30_000));
  const path = await file('e.ndjson', lines);
  const killed = start('ingest', 'events', path);
  await until(async () => expect((await chunks()).claimed).toBe(1));
  await killed.kill('SIGKILL');

  const next = start('ingest', 'events', '--json', path);
  const { rows, repeated_rows } = await done(next);
  expect(rows + repeated_rows).toBe(30_000);
  // It may have waited for what ClickHouse was still storing, which the line would go on to say.
  expect((await next.ended).stderr).not.toMatch(/waiting for load \S+$/m);
  expect(await counted()).toBe(30_000);
});
