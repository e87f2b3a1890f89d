import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ndjson } from '../support/events.ts';
import { csvColumns as columns, csv, useHandedOver } from '../support/handed-over.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const handed = useHandedOver(db);
const { file, ingest, loaded, counted, events } = handed;

/** A Parquet file with one event for each quantity, typed as other programs write it. */
async function parquet(quantities: readonly number[]): Promise<Buffer> {
  const { stream } = await db.store.exec({
    query: `SELECT concat({account:String}, '-', toString(number)) AS event_id,
                   toDateTime64('2026-03-01 12:00:00.000', 3, 'UTC') AS event_time, 'impression' AS event_type,
                   {account:String} AS advertiser_id, 'campaign' AS campaign_id,
                   arrayElement({quantities:Array(Int64)}, number + 1) AS quantity, toDecimal64('1.25', 6) AS spend,
                   true AS confirmed
            FROM numbers(length({quantities:Array(Int64)})) FORMAT Parquet`,
    query_params: { account: handed.account, quantities },
  });
  return buffer(stream);
}

describe('every way to hand over events counts each once, and a second time changes nothing', () => {
  const ways: Record<string, () => Promise<string[]>> = {
    NDJSON: async () => [await file('e.ndjson', ndjson(events(6)))],
    CSV: async () => [await file('e.csv', csv(events(6)))],
    Parquet: async () => [await file('e.parquet', await parquet([1, 1, 1, 1, 1, 1]))],
    'packed NDJSON': async () => [await file('e.ndjson.gz', gzipSync(ndjson(events(6))))],
    'packed CSV': async () => [await file('e.csv.gz', gzipSync(csv(events(6))))],
    'a name that says nothing': async () => ['--format', 'csv', await file('events', csv(events(6)))],
    'several files': async () => [
      await file('a.csv', csv(events(2))),
      await file('b.ndjson', ndjson(events(4))),
    ],
    'a folder': async () => {
      await file('a.csv', csv(events(2)));
      await file('b.ndjson.gz', gzipSync(ndjson(events(4))));
      return [handed.home];
    },
    'a pattern': async () => {
      await file('part-1.csv', csv(events(2)));
      await file('part-2.csv', csv(events(4)));
      await file('other.csv', csv(events(1)));
      return [join(handed.home, 'part-*.csv')];
    },
    'a file with a byte order mark': async () => [await file('e.csv', `\ufeff${csv(events(6))}`)],
    'NDJSON with a byte order mark': async () => [await file('e.ndjson', `\ufeff${ndjson(events(6))}`)],
    'CSV with CRLF': async () => [await file('e.csv', csv(events(6), '\r\n'))],
    'NDJSON with CRLF': async () => [await file('e.ndjson', ndjson(events(6)).replaceAll('\n', '\r\n'))],
    'no line end at the end': async () => [await file('e.csv', csv(events(6)).trimEnd())],
    'NDJSON with blank lines': async () => [
      await file('e.ndjson', `\n${ndjson(events(3))}\n\r\n${ndjson(events(3))}\n\n`),
    ],
    'CSV with blank lines at both ends': async () => [await file('e.csv', `\n${csv(events(6))}\n\r\n\n`)],
    'CSV with quoted line ends': async () => {
      const campaign_id = '"spring\nand, ""summer"""';
      return [await file('e.csv', csv(events(6, { campaign_id })))];
    },
  };

  test.each(Object.entries(ways))('%s', async (_, prepare) => {
    const args = await prepare();
    expect(await loaded(args)).toMatchObject({ rows: 6, repeated_rows: 0 });
    expect(await counted()).toBe(6);
    const again = await ingest(['events', ...args]);
    expect(again).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/already loaded/) });
    expect(await counted()).toBe(6);
  });

  test('standard input', async () => {
    const lines = ndjson(events(6));
    expect(await loaded(['-'], lines)).toMatchObject({ rows: 6 });
    expect(await loaded(['-'], lines)).toMatchObject({ rows: 0, repeated_rows: 6 });
    expect(await loaded(['--format', 'csv', '-'], csv(events(2)))).toMatchObject({ rows: 2 });
    expect(await counted()).toBe(8);
  });
});

test.each(['', '\n\n', columns.join(','), `${columns.join(',')}\r\n`])(
  'a file without events is loaded without complaint: %j',
  async (content) => {
    expect(await loaded([await file('e.csv', content)])).toMatchObject({ rows: 0, repeated_rows: 0 });
    if (!content.trim()) expect(await loaded([await file('e.ndjson', content)])).toMatchObject({ rows: 0 });
  },
);

test('--suggest prints a mapping that can be kept in a file, and what the file would be; it loads nothing', async () => {
  const path = await file('tiktok.csv', await readFile('examples/tiktok-ads.csv'));
  const suggested = await ingest(['events', '--suggest', path]);
  expect(suggested).toMatchObject({ code: 0, stderr: expect.stringContaining('examples/tiktok-ads.json') });
  expect(suggested.stderr).toContain(
    `adtally ingest events --mapping mapping.json --set advertiser_id=… ${path}`,
  );
  // The three first events.
  expect(suggested.stderr.match(/│ 2026-09-0\d/g)).toHaveLength(3);
  expect(await counted()).toBe(0);
  const mapping = await file('mapping.json', suggested.stdout);
  expect(await ingest(['events', '--mapping', mapping, path])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('mapping.json: fill_in.advertiser_id: no column names the account'),
  });
  expect(
    await loaded(['--mapping', mapping, '--set', `advertiser_id=${handed.account}`, path]),
  ).toMatchObject({ rows: 3 });
});

test('--suggest shows expressions as they stand in a mapping', async () => {
  const counts = await ingest(['events', '--suggest', await file('s.csv', 'Day,Imps\n2026-09-01,"1,204"\n')]);
  expect(counts.stderr).toContain(
    String.raw`in expressions replaceRegexpAll({Imps}, ',([0-9]{3})\\\\b', '\\1')`,
  );
});

test('the command that --suggest prints reads the file as it did', async () => {
  const path = await file('e.txt', csv(events(1)));
  const flags = ['--format', 'csv', '--endpoint', 'http://minio:9000'];
  const { stderr } = await ingest(['events', '--suggest', ...flags, path]);
  expect(stderr).toContain(
    `adtally ingest events --format csv --endpoint 'http://minio:9000' --mapping mapping.json`,
  );
});

test('--suggest says that its condition leaves out what it looked at, and takes --no-header', async () => {
  const days = Array.from({ length: 8 }, (_, n) => `2026-09-0${n + 1},c,5\n`).join('');
  const totals = await file('totals.csv', `Day,Campaign ID,Clicks\n${'Total,,40\n'.repeat(3)}${days}`);
  const { stderr } = await ingest(['events', '--suggest', totals]);
  expect(stderr).toContain("where leaves out all of the first records: {Day} NOT IN ('Total')");
  const bare = await file('bare.csv', '01-Sep-26,c1,mobile,mobile\n');
  expect(await ingest(['events', '--suggest', bare])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('column mobile appears twice (--no-header, or'),
  });
  const numbered = await ingest(['events', '--suggest', '--no-header', bare]);
  expect(JSON.parse(numbered.stdout)).toMatchObject({ header: false });
});

test('--suggest goes with no mapping', async () => {
  const path = await file('e.csv', csv(events(1)));
  expect(await ingest(['events', '--suggest', '--map', 'spend=Cost', path])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      '--suggest goes with --format, --encoding, --no-header and --endpoint only, not with map',
    ),
  });
});
