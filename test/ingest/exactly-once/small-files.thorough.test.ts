import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { event, ndjson } from '../../support/events.ts';
import { done } from '../../support/loader.ts';
import { until, useMeetingLoaders } from '../../support/meeting-loaders.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { file, start, events, counted } = useMeetingLoaders(db);

/** A folder of files with a few events each, of every format, some of them odd; and how many events there are. */
async function smallFiles(files: number) {
  const folder = (await file('x', '')).replace(/x$/, 'small');
  await mkdir(folder);
  let all = 0;
  for (let n = 0; n < files; n++) {
    const lines = events(1 + (n % 3)).map((line, m) => ({ ...line, creative_id: `"${n}", line\n${m}` }));
    const columns = Object.keys(lines[0] ?? {}) as (keyof (typeof lines)[0])[];
    const inQuotes = (cell: unknown) => `"${`${cell ?? ''}`.replaceAll('"', '""')}"`;
    const cells = (delimiter: string) =>
      [columns, ...lines.map((line) => columns.map((name) => inQuotes(line[name])))]
        .map((row) => row.join(delimiter))
        .join('\n');
    const contents = [`ndjson:${ndjson(lines)}`, `csv:${cells(',')}\n`, `tsv:${cells('\t')}`];
    const [, ending, content = ''] = /^(\w+):(.*)$/s.exec(contents[n % 3] ?? '') ?? [];
    await writeFile(join(folder, `${String(n).padStart(3, '0')}.${ending}`), content);
    all += lines.length;
  }
  return { folder, all };
}

test('a loader of small files that is killed is continued by the same command', async () => {
  const { folder, all } = await smallFiles(100);
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
  const { folder, all } = await smallFiles(40);
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
