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

/** A Parquet file of six events, typed as other programs write it. */
async function parquet(): Promise<Buffer> {
  const { stream } = await db.store.exec({
    query: `SELECT concat({account:String}, '-', toString(number)) AS event_id,
                   toDateTime64('2026-03-01 12:00:00.000', 3, 'UTC') AS event_time, 'impression' AS event_type,
                   {account:String} AS advertiser_id, 'campaign' AS campaign_id, toInt64(1) AS quantity,
                   toDecimal64('1.25', 6) AS spend, true AS confirmed
            FROM numbers(6) FORMAT Parquet`,
    query_params: { account: handed.own.account },
  });
  return buffer(stream);
}

describe('every way to hand over events counts each once, and a second time changes nothing', () => {
  async function expectOnce(args: readonly string[], rows = 6): Promise<void> {
    expect(await loaded(args)).toMatchObject({ rows, repeated_rows: 0 });
    expect(await counted()).toBe(rows);
    const again = await ingest(['events', ...args]);
    expect(again).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/already loaded/) });
    expect(await counted()).toBe(rows);
  }

  test('files of every kind, and some without events', async () => {
    const header = columns.join(',');
    const lines = () => ndjson(events(6));
    const six: [name: string, content: string | Buffer][] = [
      ['a.ndjson', lines()],
      ['a.csv', csv(events(6))],
      ['a.parquet', await parquet()],
      ['packed.ndjson.gz', gzipSync(lines())],
      ['packed.csv.gz', gzipSync(csv(events(6)))],
      ['mark.csv', `\ufeff${csv(events(6))}`],
      ['mark.ndjson', `\ufeff${lines()}`],
      ['crlf.csv', csv(events(6), '\r\n')],
      ['crlf.ndjson', lines().replaceAll('\n', '\r\n')],
      ['no-end.csv', csv(events(6)).trimEnd()],
      ['blank.ndjson', `\n${ndjson(events(3))}\n\r\n${ndjson(events(3))}\n\n`],
      ['blank.csv', `\n${csv(events(6))}\n\r\n\n`],
      ['quoted.csv', csv(events(6, { campaign_id: '"spring\nand, ""summer"""' }))],
    ];
    const none = ['', '\n\n', header, `${header}\r\n`].map(
      (content, n) => [`none-${n}.csv`, content] as const,
    );
    const paths: string[] = [];
    for (const [name, content] of [...six, ...none, ['none.ndjson', ''] as const])
      paths.push(await file(name, content));
    await expectOnce(paths, 6 * six.length);
  });

  const ways: Record<string, () => Promise<string[]>> = {
    'a name that says nothing': async () => ['--format', 'csv', await file('events', csv(events(6)))],
    'a folder': async () => {
      await file('a.csv', csv(events(2)));
      await file('b.ndjson.gz', gzipSync(ndjson(events(4))));
      return [handed.own.home];
    },
    'a pattern': async () => {
      await file('part-1.csv', csv(events(2)));
      await file('part-2.csv', csv(events(4)));
      await file('other.csv', csv(events(1)));
      return [join(handed.own.home, 'part-*.csv')];
    },
  };

  test.each(Object.entries(ways))('%s', async (_, prepare) => expectOnce(await prepare()));

  test('standard input', async () => {
    const lines = ndjson(events(6));
    expect(await loaded(['-'], lines)).toMatchObject({ rows: 6 });
    expect(await loaded(['-'], lines)).toMatchObject({ rows: 0, repeated_rows: 6 });
    expect(await loaded(['--format', 'csv', '-'], csv(events(2)))).toMatchObject({ rows: 2 });
    expect(await counted()).toBe(8);
  });
});

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
    await loaded(['--mapping', mapping, '--set', `advertiser_id=${handed.own.account}`, path]),
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
  const { stdout, stderr } = await ingest(['events', '--suggest', totals]);
  expect(stderr).toContain("where leaves out all of the first records: {Day} NOT IN ('Total')");
  const flags = [
    '--mapping',
    await file('mapping.json', stdout),
    '--set',
    `advertiser_id=${handed.own.account}`,
  ];
  const loading = await ingest(['events', ...flags, totals]);
  expect(loading).toMatchObject({ code: 0, stderr: expect.stringMatching(/, 3 left out by where$/m) });
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
