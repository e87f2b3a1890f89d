import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { defaultMapping } from '../../ingest/event/mapping.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { type ChunkLines, explainedLines } from '../../src/cli/operations/explained-lines.ts';
import { withReader } from '../../src/close/with-reader.ts';
import { explainedRow } from '../../src/report/explain/explain-request.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, ndjson } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import { parquetFile } from '../support/parquet.ts';
import { environmentOf, outputOf } from '../support/process.ts';
import { useStatementsBetween } from '../support/statements-between.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const { own, file, run, ingest } = useLoader(db);

const runBy = useCommandRunners();
/** Statements that read in two threads are slow, as those of an explanation in a large store. */
const slow = useStatementsBetween(
  () => db.address.url,
  ({ settings }) => (settings.get('max_threads') === '2' ? delay(1_500) : undefined),
);

const now = () => new Date();
const days = ['--from', '2026-03-01', '--to', '2026-03-01'];

const explain = (row: string, ...flags: string[]) => explainOn('2026-03-01', row, ...flags);

async function explainOn(day: string, row: string, ...flags: string[]): Promise<ChunkLines[]> {
  const asked = [own.account, row, '--from', day, '--to', day, '--json', ...flags];
  const stdout = await outputOf(run(['explain', ...asked]));
  const { result, lines } = JSON.parse(stdout);
  for (const { chunk } of lines)
    expect(result.parts).toContainEqual(expect.objectContaining({ chunk, kind: 'events' }));
  return lines;
}

const told = async (row: string) => (await run(['explain', own.account, row, ...days])).stdout.split('\n');

/** A line of each event, every third of campaign `third`. */
const lines = (count: number) =>
  Array.from({ length: count }, (_, n) =>
    ndjson([event({ advertiser_id: own.account, campaign_id: n % 3 === 2 ? 'third' : 'other' })]),
  );

const csvHead = 'event_time,event_type,advertiser_id,campaign_id,quantity';
const csvLine = (campaign: string, quantity: number | string = 1, time = '2026-03-01') =>
  `${time},impression,${own.account},${campaign},${quantity}\n`;

async function load(path: string, ...flags: string[]): Promise<void> {
  await outputOf(ingest(path, ...flags));
}

test('an explanation by command may take longer than a report', async () => {
  await load(await file('events.ndjson', lines(2).join('')));
  const env = { ...environmentOf({ ...db.address, url: slow.url }), REPORT_TIMEOUT_SECONDS: '1' };
  await outputOf(runBy(['explain', own.account, 'campaign_id=other', ...days], env));
});

test('of a row that no event adds to it says so, and shows no empty table', async () => {
  await load(await file('events.ndjson', lines(2).join('')));
  const none = ['explain', own.account, 'campaign_id=zzz', ...days];
  const stderr = 'no event of these days adds to such a row\n';
  expect(await run(none)).toMatchObject({ code: 0, stdout: '', stderr });
  const asJson = await run([...none, '--json']);
  expect(asJson).toMatchObject({ code: 0, stderr });
  expect(JSON.parse(asJson.stdout)).toMatchObject({ result: { parts: [] }, lines: [] });
});

test('each chunk is found again in its file, and there the records of the row', async () => {
  const path = await file('events.ndjson', `\n${lines(300).join('')}`);
  await loadEvents({ store: db.store, input: new LocalFile(path), chunkBytes: 20_000, now });
  const found = await explain('campaign_id=third');
  const text = (await readFile(path, 'utf8')).split('\n');
  expect(found.length).toBeGreaterThan(2);
  let next = 2;
  for (const { first_line = 0, last_line = 0, records, record_lines, ...rest } of found) {
    expect(rest).toMatchObject({ file: path, found: 'unchanged', unit: 'line' });
    expect(first_line).toBe(next);
    next = last_line + 1;
    const expected = text.flatMap((line, n) =>
      n + 1 >= first_line && n + 1 <= last_line && line.includes('"third"') ? [n + 1] : [],
    );
    expect(records).toBe(expected.length);
    expect(record_lines).toEqual(expected.slice(0, 20));
  }
  expect(next).toBe(302);
});

test('CSV with a header, packed, with records of several lines; rejected records are not of the row', async () => {
  const head = `${csvHead},reason`;
  const record = (campaign: string, quantity: number | string, reason: string) =>
    csvLine(campaign, quantity).replace('\n', `,"${reason}"\n`);
  const text = [
    `${head}\n`,
    record('shoes', 1, 'first\nof two lines'),
    record('hats', 1, ''),
    record('shoes', 'many', ''),
    record('shoes', 2, ''),
    csvLine('shoes', 1, '2026-03-02').replace('\n', ',\n'),
  ].join('');
  const path = await file('events.csv.gz', gzipSync(text));
  expect((await ingest(path)).code).toBe(4);
  expect(await explain('campaign_id=shoes')).toMatchObject([
    { file: path, found: 'unchanged', first_line: 2, last_line: 7, records: 2, record_lines: [2, 6] },
  ]);
  expect(await told('campaign_id=shoes')).toContain(
    `${path}, lines 2 to 7: unchanged; the row has 2 records there: line 2; 6`,
  );
});

test('lines far behind in a large chunk are told exactly', async () => {
  const count = 70_000;
  const rare = [65_536, 65_537, 69_000];
  const text = Array.from({ length: count }, (_, n) =>
    csvLine(rare.includes(n + 2) ? 'rare' : `c-${n}`, 1).replace('\n', `,${'x'.repeat(240)}\n`),
  );
  const path = await file('large.csv', `${csvHead},note\n${text.join('')}`);
  expect((await readFile(path)).length).toBeGreaterThan(17 << 20);
  await load(path, '--ignore-unknown');
  expect(await explain('campaign_id=rare')).toMatchObject([
    { first_line: 2, last_line: count + 1, records: rare.length, record_lines: rare },
  ]);
});

test('rows of Parquet, which has no lines, are told exactly, whatever row group they are in', async () => {
  const rows = 86_400 + 700;
  const path = await file('groups.parquet', await parquetFile(db.store, own.account, rows, { group: 1_000 }));
  await load(path);
  // The row of number n is n + 1.
  const first = 86_400 + ((5 - (86_400 % 7) + 7) % 7) + 1;
  expect(await explainOn('2026-03-02', 'campaign_id=campaign-5')).toMatchObject([
    {
      unit: 'row',
      first_line: 1,
      last_line: rows,
      records: 100,
      record_lines: Array.from({ length: 20 }, (_, n) => first + 7 * n),
    },
  ]);
});

test('a line that is several events of the row is one of its records', async () => {
  const path = await file('theirs.csv', 'Day,Camp,Imps,Clicks\n2026-03-01,shoes,3,1\n2026-03-01,hats,4,2\n');
  const fields = { event_time: 'Day', campaign_id: 'Camp' };
  const mapping = await file(
    'theirs.json',
    JSON.stringify({
      set: { advertiser_id: own.account },
      events: [{ map: { ...fields, impressions: 'Imps' } }, { map: { ...fields, referrals: 'Clicks' } }],
    }),
  );
  expect((await ingest(path, '--mapping', mapping, '--ignore-unknown')).code).toBe(0);
  expect(await explain('campaign_id=hats', '--mapping', mapping)).toMatchObject([
    { records: 1, record_lines: [3] },
  ]);
});

test('a file that was loaded through a mapping shows its lines, and with the mapping the records', async () => {
  const path = await file(
    'theirs.csv',
    `Written today\nDay,Camp,Imps,Note\n2026-03-01,shoes,3,a\n2026-03-01,hats,4,b\nTotal,,7,\n`,
  );
  const mapping = await file(
    'theirs.json',
    JSON.stringify({
      map: { event_time: 'Day', campaign_id: 'Camp', impressions: 'Imps' },
      set: { advertiser_id: own.account },
      where: "{Day} != 'Total'",
      ignore_unknown: true,
    }),
  );
  const skip = ['--skip-lines', '1'];
  expect((await ingest(path, '--mapping', mapping, ...skip)).code).toBe(0);
  const unchanged = { found: 'unchanged', first_line: 3, last_line: 5 };
  expect(await explain('campaign_id=hats', '--mapping', mapping, ...skip)).toMatchObject([
    { ...unchanged, records: 1, record_lines: [4] },
  ]);
  const [without] = await explain('campaign_id=hats', ...skip);
  expect(without).toMatchObject(unchanged);
  expect(without).not.toHaveProperty('records');
  expect(await explain('campaign_id=hats')).toMatchObject([{ found: 'changed' }]);
});

test('a file that has grown, was changed, has moved or cannot be read is told as what it is', async () => {
  const path = await file('events.csv', `${csvHead}\n${csvLine('shoes')}`);
  await load(path);
  await appendFile(path, csvLine('shoes'));
  await load(path);
  const grown = [
    { first_line: 2, last_line: 2, records: 1, record_lines: [2] },
    { first_line: 3, last_line: 3, records: 1, record_lines: [3] },
  ];
  expect(await explain('campaign_id=shoes')).toMatchObject(grown);

  const folder = join(own.home, 'done');
  await mkdir(folder);
  await rename(path, join(folder, 'events.csv'));
  const missing = { file: path, found: 'missing' };
  expect(await explain('campaign_id=shoes')).toMatchObject([missing, missing]);
  expect((await told('campaign_id=shoes')).filter((line) => line.includes('no file to read'))).toEqual([
    `${path}: there is no file to read at this path (--moved-to names another folder)`,
  ]);
  expect(await explain('campaign_id=shoes', '--moved-to', folder)).toMatchObject(
    grown.map((each) => ({ ...each, file: join(folder, 'events.csv') })),
  );

  // What is before the second chunk is the same.
  await writeFile(path, `${csvHead}\n${csvLine('shoes')}${csvLine('boots')}`);
  expect(await explain('campaign_id=shoes')).toMatchObject([grown[0], { found: 'changed' }]);
  await writeFile(path, gzipSync('a text of one line, which is cut off').subarray(0, 20));
  expect(await explain('campaign_id=shoes')).toMatchObject([
    { found: 'unreadable', why: `${path}: the packed data ends too early: it is truncated` },
    { found: 'unreadable' },
  ]);
  // Another file of that name does not hide that this one cannot be read.
  await writeFile(join(folder, 'events.csv'), `${csvHead}\n${csvLine('hats')}`);
  expect(await explain('campaign_id=shoes', '--moved-to', folder)).toMatchObject([
    { found: 'unreadable' },
    { found: 'unreadable' },
  ]);
});

/** Looks for a chunk that never was in each of these files, and reads so much of them. */
async function look(files: readonly string[], maxBytes: number): Promise<string[]> {
  const asked = { start_time: '2026-03-01', end_time: '2026-03-01', row: {} };
  const row = explainedRow(catalog, 'campaigns', own.account, asked);
  const places = files.map((each, n) => ({ chunk: `${n}`, file: each }));
  const found = await withReader(db.store, (reader) =>
    explainedLines(db.store, reader, row, places, { mapping: defaultMapping, maxBytes }),
  );
  return found.map((each) => each.found);
}

test('objects are not read, nor more of files than is asked for', async () => {
  const path = await file('events.csv', `${csvHead}\n`);
  const other = await file('other.csv', `${csvHead}\n`);
  const files = [`${path}.gone`, path, other, 's3://bucket/events.csv'];
  expect(await look(files, csvHead.length)).toEqual(['missing', 'changed', 'unread', 'unread']);
  expect(await look(files, 1_000)).toEqual(['missing', 'changed', 'changed', 'unread']);
});

test('a large file that has changed is not read to its end', async () => {
  const path = await file('large.csv', `${csvHead}\n${csvLine('shoes').repeat(800_000)}`);
  expect((await readFile(path)).length).toBeGreaterThan(30 << 20);
  expect(await look([path], 20 << 20)).toEqual(['changed']);
});

test('where ClickHouse refuses to judge a chunk, the others are told all the same', async () => {
  const path = await file('events.csv', `${csvHead}\n${csvLine('shoes')}`);
  await load(path);
  const [found] = await explain('campaign_id=shoes');
  const asked = { start_time: '2026-03-01', end_time: '2026-03-01', row: { campaign_id: 'shoes' } };
  const row = explainedRow(catalog, 'campaigns', own.account, asked);
  const places = [path, 's3://bucket/events.csv'].map((each) => ({ chunk: `${found?.chunk}`, file: each }));
  const told = await withReader(db.store, (reader) => {
    const refusing = reader.with({}, { max_columns_to_read: 1, max_temporary_columns: 1 });
    return explainedLines(db.store, refusing, row, places, { mapping: defaultMapping, maxBytes: 1_000 });
  });
  expect(told).toMatchObject([{ found: 'unreadable' }, { found: 'unread' }]);
  expect(told[0]?.why).toContain(`${path}: `);
});

test('what was cut in two ways is found in both', async () => {
  const path = await file('events.csv', `${csvHead}\n${csvLine('shoes')}`);
  await load(path);
  await appendFile(path, csvLine('boots'));
  // Read in another way it is one chunk.
  const other = ['--set', 'campaign_id=all'];
  expect((await ingest(path, ...other, '--again')).code).toBe(0);
  await load(path);
  expect(await explain('campaign_id=boots')).toMatchObject([{ first_line: 3, records: 1 }]);
  expect(await explain('campaign_id=all')).toMatchObject([{ first_line: 2, last_line: 3 }]);
  expect(await explain('campaign_id=all', ...other)).toMatchObject([{ records: 2, record_lines: [2, 3] }]);
  // What is looked for comes before what the same flags made.
  const [shoes] = await explain('campaign_id=shoes', ...other);
  expect(shoes).toMatchObject({ found: 'unchanged', first_line: 2, last_line: 2 });
  expect(shoes).not.toHaveProperty('records');
});

test('a replacement is found in each of its files', async () => {
  const old = await file('old.csv', `${csvHead}\n${csvLine('shoes')}`);
  const { stdout } = await ingest(old);
  const [id] = JSON.parse(stdout).loads;
  const files = [
    await file('a.csv', `${csvHead}\n${csvLine('shoes', 2)}`),
    await file('b.csv', `${csvHead}\n${csvLine('hats', 2)}${csvLine('shoes', 3)}`),
  ];
  expect((await ingest(...files, '--replaces', id)).code).toBe(0);
  const found = await explain('campaign_id=shoes');
  expect(found.toSorted((a, b) => (a.file < b.file ? -1 : 1))).toMatchObject([
    { file: files[0], record_lines: [2] },
    { file: files[1], record_lines: [3] },
  ]);
});

test('of a replacement by a folder it is said that its files are not known by name; one whose name has spaces is found', async () => {
  const old = await file('old.csv', `${csvHead}\n${csvLine('shoes')}`);
  const [first] = JSON.parse((await ingest(old)).stdout).loads;
  const folder = join(own.home, 'in');
  await mkdir(folder);
  const path = join(folder, 'new events.csv');
  await writeFile(path, `${csvHead}\n${csvLine('shoes', 2)}`);
  const { stdout } = await ingest(folder, '--replaces', first);
  const [unread] = await explain('campaign_id=shoes');
  expect(unread).toMatchObject({ file: `${folder} --replaces ${first}`, found: 'unread' });
  expect(unread?.why).toContain('folder');

  const [second] = JSON.parse(stdout).loads;
  await writeFile(path, `${csvHead}\n${csvLine('shoes', 3)}`);
  expect((await ingest(path, '--replaces', second)).code).toBe(0);
  expect(await explain('campaign_id=shoes')).toMatchObject([{ file: path, record_lines: [2] }]);

  const odd = await file('a --replaces b.csv', `${csvHead}\n${csvLine('hats')}`);
  await load(odd);
  expect(await explain('campaign_id=hats')).toMatchObject([{ file: odd, record_lines: [2] }]);
});
