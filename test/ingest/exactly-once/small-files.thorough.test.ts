import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { event } from '../../support/events.ts';
import { done } from '../../support/loader.ts';
import { until, useMeetingLoaders } from '../../support/meeting-loaders.ts';
import { writeSmallFiles } from '../../support/small-files.ts';
import { useStore } from '../../support/store.ts';

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

test('a folder of small files is loaded as if each were alone', async () => {
  const folder = (await file('x', '')).replace(/x$/, 'small');
  const all = await writeSmallFiles(folder, 40, events);
  const bad = { ...event(events(1)[0]), device: 'x'.repeat(40) };
  const lines = ['', JSON.stringify(events(1)[0]), JSON.stringify(bad)];
  await writeFile(join(folder, 'bad.ndjson'), lines.join('\r\n'));
  await writeFile(join(folder, 'same.ndjson'), lines.join('\r\n'));
  await writeFile(join(folder, 'empty.ndjson'), '');

  const first = await start('ingest', 'events', '--json', folder).ended;
  expect(first).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/(bad|same)\.ndjson line 3: device/),
  });
  const { files, rows, repeated_rows, rejected_rows, loads } = JSON.parse(first.stdout);
  expect({ files, rows, repeated_rows, rejected_rows }).toEqual({
    files: 43,
    rows: all + 1,
    repeated_rows: 1,
    rejected_rows: 1,
  });
  expect(loads).toHaveLength(43);
  expect(await counted()).toBe(all + 1);
  const rejects = await select(
    db.store,
    'SELECT toUInt32(line) AS line, r.file = l.file AS own FROM rejected_rows AS r INNER JOIN loads AS l ON r.load_id = l.load_id WHERE startsWith(r.file, {folder:String}) LIMIT 1 BY r.chunk, line',
    { folder },
  );
  expect(rejects).toEqual([{ line: 3, own: 1 }]);

  const again = await start('ingest', 'events', '--json', folder).ended;
  expect(again.code).toBe(4);
  expect(JSON.parse(again.stdout)).toMatchObject({ rows: 0, repeated_rows: all + 2 });
  expect(await counted()).toBe(all + 1);
});
