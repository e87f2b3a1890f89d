import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { avroFile, recordOf } from '../../support/avro.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoadedFiles } from '../../support/loaded-files.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

/** A record that is a click and, later, a conversion. */
const { db, loadText, inFile, refusal, warned } = useMappedLoads();
const files = useLoadedFiles(db);

const mapping = {
  map: { creative_id: 'ad' },
  where: "{ad} != 'test'",
  events: [
    { map: { event_time: 'clicked', spend: 'cost' }, set: { referrals: '1' } },
    {
      map: { event_time: 'converted' },
      expressions: { spend: '{payout} / 100' },
      set: { conversions: '1' },
      where: "{converted} != ''",
    },
  ],
};
const columns = ['clicked', 'converted', 'ad', 'cost', 'payout'];
const rows = [
  ['2026-03-01 10:00:00', '2026-03-03 11:00:00', 'a', '0.5', '250'],
  ['2026-03-01 12:00:00', '', 'b', '0.25', ''],
  ['2026-03-02 12:00:00', '2026-03-02 13:00:00', 'test', '9', '900'],
];
const table = (separator: string, all = rows) =>
  [columns, ...all].map((row) => `${row.join(separator)}\n`).join('');
const lines = (all = rows) =>
  all
    .map((row) => `${JSON.stringify(Object.fromEntries(row.map((cell, n) => [columns[n], cell])))}\n`)
    .join('');
const mapped = (file: string) => [
  ...['--mapping', file, `--set=advertiser_id=${files.account}`, '--set=campaign_id=c'],
];
const fields =
  'toString(event_time), creative_id, toUInt32(referrals), toUInt32(conversions), toString(spend)';

test.each([
  ['csv', table(',')],
  ['tsv', table('\t')],
  ['ndjson', lines()],
])('each event of a record counts by itself: %s', async (ending, text) => {
  expect(await loadText(await inFile(mapping), text, fields, ending)).toEqual({
    events: [
      ['2026-03-01 10:00:00.000', 'a', 1, 0, '0.5'],
      ['2026-03-01 12:00:00.000', 'b', 1, 0, '0.25'],
      ['2026-03-03 11:00:00.000', 'a', 0, 1, '2.5'],
    ],
    rejected: [],
    leftOut: 3,
  });
});

test.each(['clicked', 'event_time'])(
  'an amount that several events of a record read because of its name is warned of, until each event names it: %s',
  async (time) => {
    const text = `${time},converted,ad,spend\n2026-03-01 10:00:00,2026-03-03 11:00:00,a,0.5\n`;
    const [click, conversion] = mapping.events;
    const load = async (spend: object) => {
      const before = warned.length;
      const own = { ...conversion, expressions: {}, set: { conversions: '1', ...spend } };
      const map = { ...(time === 'clicked' && { event_time: time }), spend: 'spend' };
      const file = await inFile({ map: { creative_id: 'ad' }, events: [{ ...click, map }, own] });
      const { events: stored } = await loadText(file, text, 'toString(spend)');
      return { stored: stored.flat(), said: warned.slice(before) };
    };
    expect(await load({})).toEqual({
      stored: ['0.5', '0.5'],
      said: [
        expect.stringMatching(
          /column spend is read because .* counts in each event of a record .*"set": \{"spend": "0"\}/,
        ),
      ],
    });
    expect(await load({ spend: '0' })).toEqual({ stored: ['0', '0.5'], said: [] });
  },
);

test('what is to be filled in is given where each event has it', async () => {
  const [click, conversion] = mapping.events;
  const own = { ...conversion, set: { ...conversion?.set, spend: '0', advertiser_id: 'a' }, expressions: {} };
  const whose = (events: object[]) =>
    inFile({ ...mapping, events, fill_in: { advertiser_id: 'whose?' } }, 'ads.json');
  expect(await refusal(await whose([{ ...click, map: { ...click?.map, advertiser_id: 'ad' } }, own]))).toBe(
    'nothing',
  );
  expect(await refusal(await whose([click ?? {}, own]))).toBe('ads.json: fill_in.advertiser_id: whose?');
});

test('of Parquet, with times of the file in another zone than those without one', async () => {
  await files.writeByDuckDb(
    'e.parquet',
    `SELECT TIMESTAMPTZ '2026-03-01 10:00:00+00' AS clicked, TIMESTAMPTZ '2026-03-03 11:00:00+00' AS converted, 'a' AS ad, 0.5::DECIMAL(18,6) AS cost, 250 AS payout`,
  );
  const path = (await files.loader.file('none', '')).replace(/none$/, 'e.parquet');
  const { mapping: file = '' } = await inFile(mapping);
  const { stdout, stderr } = await files.loader.ingest(...mapped(file), '--timezone=Asia/Tokyo', path);
  expect(JSON.parse(stdout), stderr).toMatchObject({ rows: 2, rejected_rows: 0 });
  const stored = await select<Record<string, unknown>>(
    db.store,
    `SELECT ${fields} FROM events WHERE advertiser_id = {account:String} ORDER BY ALL`,
    { account: files.account },
  );
  expect(stored.map((row) => Object.values(row))).toEqual([
    ['2026-03-01 10:00:00.000', 'a', 1, 0, '0.5'],
    ['2026-03-03 11:00:00.000', 'a', 0, 1, '2.5'],
  ]);
});

test('of Avro, and again nothing is left to load', async () => {
  const schema = recordOf(Object.fromEntries(columns.map((name) => [name, 'string'])));
  const records = rows.map((row) => Object.fromEntries(row.map((cell, n) => [columns[n], cell])));
  const path = await files.loader.file('e.avro', await avroFile(schema, records));
  const { mapping: file = '' } = await inFile(mapping);
  const load = async () => JSON.parse((await files.loader.ingest(...mapped(file), path)).stdout);
  expect(await load()).toMatchObject({ rows: 3, left_out_rows: 3 });
  expect(await load()).toMatchObject({ rows: 0, repeated_rows: 3 });
});

test('a faulty event is rejected by its record and number, the others count; corrected, it counts once', async () => {
  const bad = [
    ['never', 'soon', 'c', '1', 'much'],
    ['2026-03-04 01:00:00', 'soon', 'd', '1', '100'],
    ...rows,
  ];
  const path = await files.loader.file('e.csv', table(',', bad));
  const { mapping: file = '' } = await inFile(mapping);
  for (const repeated of [false, true]) {
    const { code, stdout, stderr } = await files.loader.ingest(...mapped(file), path);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject(
      repeated
        ? { code: 4, rows: 0, repeated_rows: 4, open_rejects: 3 }
        : { code: 4, rows: 4, rejected_rows: 3 },
    );
    if (repeated) continue;
    const said = stderr.split('\n').filter((line) => line.startsWith('rejected: '));
    expect(said.map((line) => line.replace(`rejected: ${path} `, '').replace(/ must.*/, ''))).toEqual([
      'line 2, event 1: event_time',
      'line 2, event 2: event_time',
      'line 3, event 2: event_time',
    ]);
  }
  const [{ load } = { load: '' }] = await select<{ load: string }>(
    db.store,
    'SELECT DISTINCT load_id AS load FROM rejected_rows WHERE file = {path:String}',
    { path },
  );
  const csv = (await files.loader.run(['rejects', load, '--csv'])).stdout;
  expect((await files.loader.run(['rejects', load])).stdout).toContain('3, event 2');
  const times = csv.replaceAll('never', '2026-03-05').replaceAll('soon', '2026-03-06');
  const partly = await files.loader.run(['replay', load, await files.loader.file('c.csv', times)]);
  expect(partly.stderr).toContain('2 rows replayed');
  expect(partly.stderr).toMatch(/line 2.* spend must be computed from numbers.*; give it, 0 for none/);
  const left = JSON.parse((await files.loader.run(['rejects', load, '--json'])).stdout);
  Object.assign(left.event, { event_time: '2026-03-06', spend: '0.07' });
  const whole = await files.loader.file('w.ndjson', `${JSON.stringify(left)}\n`);
  expect((await files.loader.run(['replay', load, whole])).stderr).toContain('1 row replayed');
  expect(await files.loader.counted()).toBe(7);
  expect((await verifyLedger(db.store)).differences).toEqual([]);
});

test('a rejected record keeps its reason through the CSV of rejected records and its replay', async () => {
  const { account } = files;
  const { file, run, ingest } = files.loader;
  const makegood = { advertiser_id: account, event_time: 'never', reason: 'makegood' };
  const path = await file('e.ndjson', ndjson([event(makegood)]));
  expect(JSON.parse((await ingest(path)).stdout)).toMatchObject({ rows: 0, rejected_rows: 1 });
  const [{ load } = { load: '' }] = await select<{ load: string }>(
    db.store,
    'SELECT load_id AS load FROM rejected_rows WHERE file = {path:String}',
    { path },
  );
  const csv = (await run(['rejects', load, '--csv'])).stdout;
  const corrected = await file('c.csv', csv.replaceAll('never', '2026-03-05 00:00:00'));
  expect((await run(['replay', load, corrected])).stderr).toContain('1 row replayed');
  const query = 'SELECT reason FROM events WHERE advertiser_id = {account:String}';
  expect(await select(db.store, query, { account })).toEqual([{ reason: 'makegood' }]);
});

test('small files beside each other, and chunks of a few records, lose and double nothing', async () => {
  const { mapping: file = '' } = await inFile({
    ...mapping,
    where: undefined,
    events: mapping.events.map(({ where: _, ...event }) => event),
  });
  const record = (ad: string) => ['2026-03-01 10:00:00', '2026-03-03', ad, '1', '100'];
  const paths: string[] = [];
  for (let n = 0; n < 4; n++) {
    const all = Array.from({ length: 5 }, (_, m) => record(`${n}-${m}`));
    paths.push(await files.loader.file(`e${n}.csv`, table(',', all)));
  }
  const loaded = JSON.parse((await files.loader.ingest(...mapped(file), ...paths)).stdout);
  expect(loaded).toMatchObject({ rows: 40, rejected_rows: 0 });
  const all = Array.from({ length: 50 }, (_, m) => record(`${m}`));
  const path = await files.loader.file('more.csv', table(',', all));
  const cut = [...mapped(file), '--chunk-bytes', '300', path];
  expect(JSON.parse((await files.loader.ingest(...cut)).stdout)).toMatchObject({ rows: 100 });
  expect(JSON.parse((await files.loader.ingest(...cut)).stdout)).toMatchObject({
    rows: 0,
    repeated_rows: 100,
  });
  expect(await files.loader.counted()).toBe(140);
});

test.each<[unknown, string]>([
  [[{}], 'm.json: events must be a list of two to eight events'],
  [[{ sum: {} }, {}], 'm.json: sum is no member'],
  [
    [{ map: { spend: 'a' }, set: { spend: '1' } }, {}],
    'm.json: events[0].set.spend: m.json: events[0].map.spend says it already',
  ],
  [[{}, { set: { spend: 'x' } }], 'm.json: events[1].set.spend: must be a decimal number'],
  ['[{"set": {"spend": "1", "spend": "2"}}, {}]', 'm.json: spend stands there twice'],
])('refused: events %j', async (events, message) => {
  const content = typeof events === 'string' ? `{"events": ${events}}` : { events };
  expect(await refusal(await inFile(content, 'm.json'))).toContain(message);
});
