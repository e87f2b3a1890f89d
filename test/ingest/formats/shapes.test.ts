import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MappingFlags } from '../../../ingest/mapping/read-mapping.ts';
import { type Example, examples, reportByDay } from '../../support/examples.ts';
import { type MappedLoad, useMappedLoads } from '../../support/mapped-loads.ts';
import { useService } from '../../support/service.ts';
import { records, recounted, type Shape, shapes, table } from '../../support/shapes.ts';

/** Files as sheets, platforms, databases and programs write them give the reports that their records add up to. */
const { db, load, inFile, warned } = useMappedLoads();
const service = useService(db);
const folder = mkdtempSync(join(tmpdir(), 'adtally-shapes-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Loaded extends MappedLoad {
  readonly account: string;
}

const loads = new Map<string, Promise<Loaded>>();
beforeAll(async () => {
  const shaped = async ([name, { ending, content, mapping, flags }]: [string, Shape]) => {
    const path = join(folder, `${name.replaceAll(/\W/g, '-')}.${ending}`);
    if (typeof content === 'function') await content(path);
    else writeFileSync(path, content);
    const read = await inFile({ ...mapping, set: { advertiser_id: name } });
    return { account: name, ...(await load({ ...read, ...flags }, path, 'creative_id')) };
  };
  const exported = async ([name, { data, side, account = name }]: [string, Example]) => {
    const flags = { mapping: `examples/${name}.json`, set: [`${side}=${account}`] };
    return { account, ...(await load(flags, `examples/${data}`, '1')) };
  };
  for (const each of Object.entries(shapes)) loads.set(each[0], shaped(each));
  for (const each of Object.entries(examples)) loads.set(each[0], exported(each));
  // Those that fail fail their own tests.
  await Promise.allSettled(loads.values());
}, 120_000);

test.each(Object.entries(shapes))('%s', async (name, { leftOut = 0 }) => {
  const loaded = await loads.get(name);
  expect(loaded).toMatchObject({ rejected: [], leftOut });
  const creatives = new Set(loaded?.events.flat().filter((each) => each !== ''));
  expect([...creatives].sort()).toEqual(records.map(({ creative }) => creative).sort());
  const report = await reportByDay(service, { data: '', side: 'advertiser_id', leftOut, rows: [] }, name);
  expect(report).toEqual(recounted);
});

describe('exports of platforms', () => {
  test.each(Object.entries(examples))('%s', async (name, example) => {
    const { account = '', ...loaded } = (await loads.get(name)) ?? {};
    expect(loaded).toMatchObject({ leftOut: example.leftOut, rejected: [] });
    expect(warned.filter((text) => text.includes(example.data))).toEqual([]);
    expect(await reportByDay(service, example, account)).toEqual(example.rows);
  });

  test('a row with several counts for both sides is in the reports of both', async () => {
    const flags = { mapping: 'examples/placements.json', set: ['publisher_id=both-sides'] };
    await load(flags, 'examples/placements.csv', '1');
    const report = await service.report('/v1/ad_units', 'both-sides', '2026-09-01', '2026-09-02');
    const figures = report.rows.map((row) => [row.ad_unit, row.impressions, row.estimated_revenue]);
    expect(figures).toEqual([
      ['160x600', 34871, 40.56416],
      ['300x250', 9875, 8.75],
      ['728x90', 8020, -0.8125],
    ]);
  });

  test('examples/README.md names each file, and each has a test', () => {
    const mappingOf = (file: string) => file.replace(/(\.data)?\.[a-z]+$/, '');
    const files = readdirSync('examples').filter((file) => file !== 'README.md');
    const readme = readFileSync('examples/README.md', 'utf8');
    expect(files.filter((file) => !readme.includes(`\`${file}\``))).toEqual([]);
    const ofMappings = files.filter((file) => !file.endsWith('.py'));
    expect([...new Set(ofMappings.map(mappingOf))].sort()).toEqual(Object.keys(examples).sort());
    expect(Object.values(examples).map(({ data }) => data)).toEqual(
      expect.arrayContaining(
        ofMappings.filter((file) => !file.endsWith('.json') || file.endsWith('.data.json')),
      ),
    );
  });
});

const nested = '{"ts":1767225600123,"campaign":{"id":"c1"},"imp":1}\n';

const answer = '{"data":[{"day":1}]}';
const badColumn = { delimiter: ';', map: ['event_time=Dya'] };
const badPath = { map: ['event_time=ts', 'campaign_id=campain.id'], ignoreUnknown: true };
const latin = Buffer.from('Größe\n', 'latin1');

/** What is said of each; behind the name of the file where the sentence does not begin otherwise. */
const refused: [file: string, content: string | Buffer, sentence: RegExp, flags?: MappingFlags][] = [
  ['sheet.xlsx', 'PK', /^Excel workbooks cannot be read; save the sheet as "CSV UTF-8"$/],
  ['sheet.csv', 'PK\x03\x04 [Content_Types].xml', /^it is an Excel workbook; save the sheet as "CSV UTF-8"$/],
  ['export.zip', 'PK', /^archives cannot be read; unpack it first$/],
  ['export.txt', 'Day', /^the name does not tell the format; end it in \.ndjson, .* or pass --format$/],
  [
    'latin.csv',
    latin,
    /^the text is not UTF-8: save it as UTF-8 \(--encoding, or "encoding" in a mapping, names what it is, such as/,
  ],
  [
    'unknown.csv',
    'event_time,advertiser_id,campaign_id,impressions,Ctr\n',
    /^column Ctr is not a field of an event \(--suggest, or a mapping, tells what is meant\); there are event_id, .* \(--ignore-unknown, or "ignore_unknown": true in a mapping, leaves it out\)$/,
  ],
  [
    'headless.csv',
    '2026-09-01,acme,c,0,0\n',
    /^column 0 appears twice \(--no-header, or "header": false in a mapping, reads the first line as a record\)$/,
  ],
  [
    'column.csv',
    table(';'),
    /^--map event_time: there is no column Dya; FILE has Day, Campaign, .*Cost$/,
    badColumn,
  ],
  [
    'path.ndjson',
    nested,
    /^--map campaign_id: no record of FILE has campain\.id; did you mean campaign\.id\?/,
    badPath,
  ],
  [
    'answer.json',
    answer,
    /^the first record has nothing that an event is read from, but an array \(--records data, or "records": "data" in a mapping, reads its elements\)$/,
  ],
  [
    'answer.json',
    answer,
    /^records rows: there is no rows; the members there are data$/,
    { records: 'rows' },
  ],
  [
    'cut.json',
    '[{"event_time":"2026-09-01"},{"ev',
    /^the JSON ends too early, behind or within record 2: it is truncated$/,
  ],
  ['packed.parquet.gz', gzipSync('PAR1'), /^Parquet is compressed inside; unpack it first$/],
  ['cut.parquet', 'PAR1', /^is not a Parquet file, or it is cut off$/],
];

test.each(refused)('%s is refused with a sentence that says what to do', async (...each) => {
  const [name, content, sentence, flags = {}] = each;
  const path = join(folder, name);
  writeFileSync(path, content);
  const { message } = await load(flags, path, '1').then(
    () => new Error('it was loaded'),
    (error: Error) => error,
  );
  expect(message.replaceAll(path, 'FILE').replace(/^FILE: /, '')).toMatch(sentence);
});
