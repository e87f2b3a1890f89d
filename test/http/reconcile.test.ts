import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { blob } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { avroFile, recordOf } from '../support/avro.ts';
import { event, load, loadRows } from '../support/events.ts';
import { all, days, theirs } from '../support/known-causes.ts';
import { useLoader } from '../support/loader.ts';
import { metric, useService } from '../support/service.ts';
import { shards, useStore } from '../support/store.ts';
import { loadHappened } from '../support/two-sides.ts';
import { zstd } from '../support/zstd.ts';
import { reportsRunning } from './report-statements.ts';

const db = useStore();
const service = useService(db);
const { file, run } = useLoader(db);

const head =
  'Campaign report\n"March 1, 2026"\nCampaign,Campaign ID,Day,Device,Impr.,Clicks,Cost,Conversions';
const theirReport = [
  head,
  '"Shoes, ""winter""","Shoes, ""winter""",2026-03-01,Computers,600,0,6.13,0',
  '"Shoes, ""winter""","Shoes, ""winter""",2026-03-01,Tablets,400,0,4.00,0',
  'Shoes,c1,2026-03-02,Computers,"1,900",0,20.00,0',
  'Boots,c9,2026-03-02,Computers,30,0,1.00,0',
  'Shoes,c1,2026-03-02,Computers,many,0,20.00,0',
  'Total,--,--,,"2,930",0,31.13,0',
].join('\n');

beforeAll(async () => {
  const of = (advertiser_id: string, campaign_id: string, day: number, quantity: number, spend: string) =>
    event({ advertiser_id, campaign_id, event_time: `2026-03-0${day}T12:00:00Z`, quantity, spend });
  await load(db.store, [
    of('acme', 'c1', 1, 1000, '10.125'),
    of('acme', 'c1', 2, 2000, '20'),
    of('acme', 'c2', 1, 500, '5'),
    of('other', 'c1', 1, 7, '0.5'),
    of('other', 'c8', 2, 8, '0.5'),
    ...(['ad_request', 'impression'] as const).map((event_type, n) =>
      event({ publisher_id: 'acme', event_type, quantity: 70 - n, revenue: '1.25' }),
    ),
  ]);
  await loadRows(db.store, 'campaigns', [
    ['acme', 'c1', 'Shoes, "winter"'],
    ['acme', 'c2', 'Hats'],
    ['other', 'c8', 'A secret'],
  ]);
});

const send = (
  account: string,
  body: string | Blob,
  { query = '', type = 'text/csv', family = 'campaigns' } = {},
): Promise<Response> =>
  service.post(`/v1/${family}/reconcile${query}`, account, body, { 'content-type': type });

async function compared(...args: Parameters<typeof send>) {
  const response = await send(...args);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text).result;
}

async function refused(...args: Parameters<typeof send>) {
  const response = await send(...args);
  const { code, detail, field } = (await response.json()) as Record<string, string>;
  return { status: response.status, code, detail, ...(field && { field }) };
}

test('a file has the same outcome as with the command, and a record that cannot be read is told with line and field', async () => {
  const result = await compared('acme', theirReport, { query: '?tolerance=5' });
  const path = await file('google.csv', theirReport);
  const { stdout } = await run([
    ...['reconcile', path, '--account', 'acme', '--mapping', 'examples/google-ads.json'],
    ...['--tolerance', '5%', '--json'],
  ]);
  const { unreadable, ...others } = JSON.parse(stdout);
  expect(result).toMatchObject(others);
  expect(result.differences.map(({ status }: { status: string }) => status)).toEqual([
    ...['within', 'only_ours', 'within', 'only_theirs'],
  ]);
  expect(unreadable).toEqual({
    records: 1,
    first: [expect.stringContaining('google.csv line 8: impressions ')],
  });
  expect(result.unreadable).toEqual({
    records: 1,
    first: [expect.stringMatching(/^the file line 8: impressions /)],
  });
});

test('what is said against a record names no option of a command', async () => {
  const { unreadable } = await compared(
    'acme',
    'day,campaign_id,impressions,spend\n2026-03-01,c1,7,1.5\n2026-03-02,c1,7,0.0000001\n',
  );
  expect(unreadable.first).toEqual([
    'the file line 3: spend has more than 6 decimal places, not "0.0000001"',
  ]);
});

test('an account sees its own numbers and names alone, whatever the file says', async () => {
  const theirs =
    'day,advertiser_id,campaign_id,impressions\n2026-03-01,acme,c1,7\n2026-03-02,acme,A secret,8\n';
  const own = await compared('other', theirs);
  expect(own.figures.impressions).toMatchObject({ ours: '15', theirs: '15', gap: { total: '0' } });
  const foreign = await compared('acme', theirs);
  expect(foreign.figures.impressions).toMatchObject({ ours: '3500', theirs: '15' });
  expect(foreign.differences).toContainEqual(
    expect.objectContaining({ campaign_id: 'A secret', status: 'only_theirs' }),
  );
});

test('loads are told by their ids, without the names of their files', async () => {
  await loadHappened(db, 'feeds', all);
  const lines = theirs(['missing_load'])
    .filter(({ day }) => days.first <= day && day <= days.last)
    .map(({ day, campaign, impressions, conversions, referrals, spent }) =>
      [day, campaign, impressions, conversions, referrals, spent / 1e6].join(),
    );
  const header = 'day,campaign_id,impressions,conversions,referrals,spent';
  const result = await compared('feeds', [header, ...lines].join('\n'));
  expect(result.explained).toMatchObject([{ cause: 'missing_load', about: { loads: [expect.any(String)] } }]);
  expect(JSON.stringify(result)).not.toContain('.ndjson');
});

test.each([
  ['campaigns', ['impressions', 'spent']],
  ['ad_units', ['estimated_revenue', 'ad_requests', 'impressions']],
])('a report of %s by day is equal to what it is a report of', async (family, metrics) => {
  const report = await service.post(
    `/v1/${family}/breakdowns/date`,
    'acme',
    { start_time: '2026-03-01', end_time: '2026-03-02' },
    { accept: 'text/csv' },
  );
  const { figures, unreadable } = await compared('acme', await report.text(), { family });
  expect(Object.keys(figures)).toEqual(metrics);
  for (const { gap } of Object.values<{ gap: { total: string } }>(figures)) expect(gap.total).toBe('0');
  expect(unreadable.records).toBe(0);
});

test('columns and days are named in the address, of NDJSON as well', async () => {
  const lines = [
    { when: '2026-03-01', what: 'c1', shown: 990 },
    { when: '2026-03-02', what: 'c1', shown: 2000 },
  ];
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const columns = '?columns.event_time=when&columns.campaign_id=what&columns.impressions=shown';
  const type = 'application/x-ndjson';
  const { figures, from, to } = await compared('acme', body, {
    query: `${columns}&end_time=2026-03-01&metrics=impressions`,
    type,
  });
  expect([from, to, figures]).toEqual([
    '2026-03-01',
    '2026-03-01',
    { impressions: expect.objectContaining({ ours: '1500', theirs: '990' }) },
  ]);
});

test('a column that is named is read as its values are written, instead of all that is known of the field', async () => {
  const header = 'Booked,Day,Campaign ID,Impressions,Paid';
  const { figures, from } = await compared('acme', `${header}\n13/02/2026,2026-03-05,c1,7,"$1,204.50"\n`, {
    query: '?columns.event_time=Booked&columns.spend=Paid&start_time=2026-02-13&end_time=2026-03-05',
  });
  expect([from, figures.spent.theirs, figures.impressions.theirs]).toEqual(['2026-02-13', '1204.5', '7']);
});

test('a constant of a known export gives way to a column that is named', async () => {
  const example = await readFile('examples/appsflyer.csv', 'utf8');
  const one = example.split('\n').slice(0, 2).join('\n');
  const query = '?metrics=conversions,spent&start_time=2026-03-01';
  const { figures } = await compared('acme', one, { query });
  expect(figures.conversions.theirs).toBe('1');
  const named = await compared('acme', one, { query: `${query}&columns.conversions=Ad%20ID` });
  expect(named.figures.conversions.theirs).toBe('7701');
});

test('what a file says of the other side of its placements is left out', async () => {
  const placed =
    'day,campaign_id,publisher_id,site_id,impressions\n2026-03-01,c1,p,s,1000\n2026-03-01,c2,p,s,500\n';
  const { figures, unreadable } = await compared('acme', placed);
  expect([figures.impressions.theirs, unreadable.records]).toEqual(['1500', 0]);
  expect(await refused('acme', placed, { family: 'ad_units' })).toMatchObject({
    detail:
      'the file: no column is known to hold the ad unit beside publisher_id: name its column ad_unit_id',
    field: 'columns.ad_unit_id',
  });
  expect(
    await refused('acme', 'day,campaign_id,impressions\n2026-03-01,c1,1\n', { family: 'ad_units' }),
  ).toMatchObject({ detail: expect.stringContaining('no column is known to hold ad_unit_id') });
});

describe('a request is refused', () => {
  const plain = 'day,campaign_id,impressions\n2026-03-01,c1,1000\n';
  test.each([
    [
      '?start_time=2026-02-30',
      { field: 'start_time', detail: 'start_time must be a date that exists, as yyyy-mm-dd' },
    ],
    ['?end_time=2200-01-01', { field: 'end_time' }],
    [
      '?start_time=2026-03-02&end_time=2026-03-01',
      { field: 'end_time', detail: 'end_time must not be before start_time' },
    ],
    ['?metrics=impressions,cpm', { field: 'metrics' }],
    ['?tolerance=5%25', { field: 'tolerance', detail: 'tolerance must be a share in percent, such as 5' }],
    ['?mapping=x', { field: 'mapping' }],
    ['?columns.cost=Cost', { field: 'columns.cost' }],
    ['?tolerance=1&tolerance=2', { field: 'tolerance', detail: 'tolerance is given more than once' }],
    ["?timezone=Nowhere'", { field: 'timezone' }],
    ['?columns.spend=Gr%F6%DFe', { detail: 'the parameters are not UTF-8' }],
    [
      '?timezone=Nowhere',
      {
        field: 'timezone',
        detail: 'timezone: Nowhere is no IANA time zone; give one such as Europe/Vienna or UTC',
      },
    ],
    [
      '?columns.spend=Cost',
      {
        field: 'columns.spend',
        detail: 'columns.spend: there is no column Cost; the file has day, campaign_id, impressions',
      },
    ],
    [
      '?start_time=2026-04-01',
      {
        field: 'start_time',
        detail: 'the file: its days are 2026-03-01 to 2026-03-01, and none is on or after 2026-04-01',
      },
    ],
    ['?end_time=2026-02-01', { field: 'end_time' }],
  ])('%s', async (query, problem) => {
    expect(await refused('acme', plain, { query })).toMatchObject({
      ...{ status: 400, code: 'invalid_request' },
      ...problem,
    });
  });

  test.each([
    [
      'day,campaign_id,impressions\n2026-03-01,c1,many\n',
      '',
      'the file: no record of it can be compared\n  the file line 2: impressions must be a whole number',
    ],
    [
      'day,campaign_id,impressions\n2026-03-01,c1,0\n',
      '',
      'the file: all its figures are 0: give the figures that are compared, such as impressions,conversions,referrals,spent',
    ],
    ['', '', 'the file: there is no record in it'],
    ['day,campaign_id,impressions\n', '', 'the file: there is no record in it'],
    [
      'day,campaign_id,impressions\n03/04/2026,c1,7\n',
      '',
      'the file: 03/04/2026 in day may be day or month first: write the day in each record as YYYY-MM-DD',
    ],
    [
      'day,campaign_id,impressions\n2026-03-01,c1,7\n,c2,8\n',
      '',
      'the file: day is blank in records that are no totals, and may be that of the record above: write the day in each record as YYYY-MM-DD',
    ],
    [
      `day,campaign_id,clicks,cost\n${'2026-03-01,c1,7,5\n'.repeat(10)}`,
      '',
      'the file: all of the first amounts in cost are whole numbers, such as 5, which may be parts of a unit: write numbers as 1234.5',
    ],
    [
      'day,campaign_id,clicks,cost\n2026-03-01,c1,7,"1,204"\n',
      '',
      'the file: 1,204 in cost may be thousands or a decimal comma: write numbers as 1234.5',
    ],
    [
      'day,campaign_id,impressions,paid\n2026-03-01,c1,7,"1,204"\n',
      '?columns.spend=paid',
      'the file: 1,204 in paid may be thousands or a decimal comma: write numbers as 1234.5',
    ],
    [
      `day,campaign_id,clicks\n${[1, 2, 3].map((day) => ['a,50', 'b,40', 'all: any,90'].map((row) => `2026-03-0${day},${row}\n`).join('')).join('')}2026-03-04,a,50\n`,
      '',
      "the file: records whose campaign_id is 'all: any' have each day the sums of all others: write the report without them if they are totals; if not, the operator can compare it",
    ],
  ])('%j %s', async (body, query, detail) => {
    expect(await refused('acme', body, { query })).toEqual({
      ...{ status: 400, code: 'file_unreadable' },
      detail: expect.stringContaining(detail),
    });
  });

  test.each([
    [
      'a,b\n1,2\n',
      'the file: no column holds days or times: name its column event_time',
      'columns.event_time',
    ],
    [
      'day,Campaign ID,Campaign-ID,impressions\n2026-03-01,c1,c2,7\n',
      'the file: Campaign ID or Campaign-ID may be campaign_id: name its column campaign_id',
      'columns.campaign_id',
    ],
    [
      'Tag;Kampagne;Impressionen\n2026-03-01;c1;900\n',
      'the file: Kampagne may be a campaign or an ad unit: name its column campaign_id',
      'columns.campaign_id',
    ],
  ])('%j, and the parameter that would name the column', async (body, detail, field) => {
    expect(await refused('acme', body)).toEqual({ status: 400, code: 'file_unreadable', detail, field });
  });

  test('because of the type or the size of its body', async () => {
    expect(await refused('acme', plain, { type: 'application/zip' })).toMatchObject({
      ...{ status: 415, code: 'unsupported_media_type' },
    });
    expect(await refused('acme', 'x'.repeat((8 << 20) + 1))).toMatchObject({
      ...{ status: 413, code: 'body_too_large' },
    });
    const type = 'application/vnd.apache.parquet';
    const unreadable = { status: 400, code: 'file_unreadable' };
    expect(await refused('acme', 'PAR1 and so on', { type })).toMatchObject(unreadable);
    // Its footer would keep all others waiting.
    const long = Buffer.concat([
      Buffer.from('PAR1'),
      Buffer.alloc(5 << 20),
      Buffer.from('\x00\x00\x50\x00PAR1'),
    ]);
    expect(await refused('acme', new Blob([long]), { type })).toMatchObject({
      ...unreadable,
      detail: expect.stringContaining('its footer has over 4 MiB'),
    });
  });

  test('because a block of it cannot be decoded', async () => {
    const schema = recordOf({ event_time: 'string', campaign_id: 'string', impressions: 'long' });
    const file = await avroFile(schema, [{ event_time: '2026-03-01', campaign_id: 'c1', impressions: 900 }]);
    // Behind the header and its sync marker: how many records the block has, twice.
    file[file.indexOf('a marker of 16 b') + 16] = 2 * 9;
    expect(await refused('acme', new Blob([file]), { type: 'application/avro' })).toEqual({
      ...{ status: 400, code: 'file_unreadable' },
      detail: 'the file: is a damaged Avro file: the records of a block cannot be decoded: EOF reached',
    });
  });

  const tooMany = {
    ...{ status: 400, code: 'invalid_request', field: 'start_time' },
    detail: 'there are too many rows for one comparison: choose fewer days, or split the file',
  };

  test('because it has too many rows to hold, but for rows of days that are not compared', async () => {
    const lines = Array.from({ length: 150_000 }, (_, n) => `2026-03-02,${n},7`);
    const body = `day,campaign_id,impressions\n2026-03-01,c1,1000\n2026-03-01,c2,500\n${lines.join('\n')}\n`;
    expect(await refused('acme', body)).toEqual(tooMany);
    const { figures } = await compared('acme', body, { query: '?end_time=2026-03-01' });
    expect(figures.impressions).toMatchObject({ ours: '1500', theirs: '1500' });
  });

  test('because the pieces that it is read in have too many rows together', async () => {
    // A piece has half a million rows.
    const { stream } = await db.store.exec({
      query: `SELECT toDate('2026-03-01') AS event_time, toString(number % 45000) AS campaign_id, toUInt32(7) AS impressions
              FROM numbers(545000) FORMAT Parquet`,
      clickhouse_settings: {
        output_format_parquet_row_group_size: '500000',
        output_format_parquet_parallel_encoding: 0,
        max_block_size: '500000',
      },
    });
    const type = 'application/vnd.apache.parquet';
    expect(await refused('acme', await blob(stream), { type })).toEqual(tooMany);
  });

  test('because it is packed, which could unpack to any size', async () => {
    for (const packed of [gzipSync(plain), zstd()])
      expect(await refused('acme', new Blob([packed]))).toMatchObject({
        ...{ status: 415, code: 'unsupported_media_type' },
        detail: 'the body must not be compressed',
      });
  });

  test('because it is not UTF-8', async () => {
    expect(
      await refused('acme', new Blob([Buffer.from('day,campaign_id,größe\n2026-03-01,c1,1\n', 'latin1')])),
    ).toEqual({
      ...{ status: 400, code: 'file_unreadable' },
      detail: 'the file: the text is not UTF-8: save it as UTF-8',
    });
  });

  test('a column whose name is SQL is no part of an expression', async () => {
    const header = 'day,campaign_id,impressions,Cost} + (SELECT 1) + {';
    const { figures } = await compared('acme', `${header}\n2026-03-01,c1,900,$1.50\n`);
    expect(Object.keys(figures)).toEqual(['impressions']);
  });
});

// Which node reads their file, and shows the statement, is chance.
test.skipIf(shards > 1)('a caller who leaves takes the statement along, and no other follows', async () => {
  const lines = Array.from({ length: 30_000 }, (_, n) => `2026-03-0${(n % 9) + 1},campaign-${n},${n}`);
  const sent = request(`${service.url}/v1/campaigns/reconcile`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await service.token('acme')}`, 'content-type': 'text/csv' },
  });
  sent.on('error', () => {});
  // What the comparisons before it have asked may not have ended yet.
  await expect.poll(() => reportsRunning(db.store), { timeout: 60_000, interval: 10 }).toEqual([]);
  const [now] = await select<{ at: string }>(db.store, 'SELECT toString(now64(6)) AS at');
  sent.end(`day,campaign_id,impressions\n${lines.join('\n')}\n`);
  await expect.poll(() => reportsRunning(db.store), { timeout: 60_000, interval: 10 }).not.toEqual([]);
  sent.destroy();
  const running = () => metric(service.url, 'adtally_reports_running');
  await expect.poll(running, { timeout: 60_000, interval: 50 }).toBe(0);
  await expect.poll(() => reportsRunning(db.store), { timeout: 60_000, interval: 50 }).toEqual([]);
  await db.store.command({ query: 'SYSTEM FLUSH LOGS' });
  // A comparison to the end is many.
  const [log] = await select<{ statements: number }>(
    db.store,
    `SELECT toFloat64(uniqExact(query_id)) AS statements FROM system.query_log
     WHERE current_database = currentDatabase() AND mapContains(Settings, 'max_result_bytes')
       AND event_time_microseconds > toDateTime64({at:String}, 6)`,
    { at: now?.at ?? '' },
  );
  expect(log?.statements).toSatisfy((statements: number) => statements > 0 && statements < 15);
});
