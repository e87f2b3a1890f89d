import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { done } from '../support/loader.ts';
import { until, useMeetingLoaders } from '../support/meeting-loaders.ts';
import { writeSmallFiles } from '../support/small-files.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const { file, start, events, counted } = useMeetingLoaders(db);

test('a loader of small files that is killed is continued by the same command', async () => {
  const folder = (await file('x', '')).replace(/x$/, 'small');
  const all = await writeSmallFiles(folder, 100, events);
  const loaded = `SELECT toUInt32(uniqExact(chunk)) AS chunks FROM load_chunks
    WHERE load_id IN (SELECT load_id FROM loads WHERE startsWith(file, {folder:String}))`;
  for (const state of ['', ' AND toUInt64(sent_at) > 0', ' AND toUInt64(loaded_at) > 0']) {
    const killed = start('ingest', 'events', '--json', folder);
    await until(async () =>
      expect(
        (await select<{ chunks: number }>(db.store, loaded + state, { folder }))[0]?.chunks,
      ).toBeGreaterThan(0),
    );
    await killed.kill('SIGKILL');
  }
  const { rows, repeated_rows } = await done(start('ingest', 'events', '--json', folder));
  expect(rows + repeated_rows).toBe(all);
  expect(await counted()).toBe(all);
});
