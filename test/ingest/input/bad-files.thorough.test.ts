import { appendFile, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import type { Ended } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { counted, events, file, run } = useLoader(db);

const ingest = (...args: string[]): Promise<Ended> => run(['ingest', 'events', ...args]);

test('a file that grows while it is read, cut in the middle of a line: every line counts once', async () => {
  const lines = ndjson(events(4_000));
  const path = await file('e.ndjson', '');
  let at = 0;
  const grow = async (bytes: number) => {
    await appendFile(path, lines.slice(at, at + bytes));
    at += bytes;
  };
  await grow(100_001);
  let growing = true;
  const load = ingest('--chunk-bytes', '30000', path).finally(() => {
    growing = false;
  });
  // At odd places, so that the end of the file is never the end of a line for long.
  while (growing && at < lines.length / 2) await grow(9_973);
  expect([0, 4]).toContain((await load).code);
  await grow(10_007);
  await ingest(path);
  await grow(lines.length);
  expect((await ingest(path)).code).toBe(0);
  expect(await counted()).toBe(4_000);
  expect(await readFile(path, 'utf8')).toBe(lines);
});
