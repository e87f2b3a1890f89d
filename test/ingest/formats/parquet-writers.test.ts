import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import * as arrow from 'apache-arrow';
import type { FileMetaData } from 'hyparquet';
import { Compression, Table as WasmTable, WriterPropertiesBuilder, writeParquet } from 'parquet-wasm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { parquetColumns } from '../../../ingest/parquet/columns.ts';
import { useLoader } from '../../support/loader.ts';
import { outputOf } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

/** Parquet as other programs write it is read back exactly. */
const db = useStore();
const { own, ...loader } = useLoader(db);
const fixture = (name: string) => join(import.meta.dirname, 'files', `${name}.parquet`);

interface Written {
  readonly at: string;
  readonly campaign: string;
  readonly device: string | null;
  readonly counts: readonly [number, number, number, number];
  readonly spend: string | null;
}

const records: readonly Written[] = [
  {
    ...{ at: '2026-09-01 10:00:00.123', campaign: 'ü 夏', device: 'tv', spend: '1.5' },
    counts: [255, 65_535, 4_294_967_295, 999_999_999_999_999],
  },
  { at: '2026-09-02 23:59:59.999', campaign: 'ü 夏', device: null, counts: [0, 1, 2, 3], spend: null },
  { at: '2026-09-03 00:00:00.000', campaign: 'b', device: 'phone', counts: [1, 0, 0, 0], spend: '-12.34' },
];

/** What is left of a time in a column of some type. */
type Kept = (at: string) => string;
const all: Kept = (at) => at;
const seconds: Kept = (at) => at.replace(/\.\d+$/, '.000');
const day: Kept = (at) => `${at.slice(0, 10)} 00:00:00.000`;

const recounted = (kept: Kept) =>
  records.map(({ at, campaign, device, counts, spend }) => ({
    ...{ at: kept(at), campaign_id: campaign, device: device ?? 'unknown', spend: spend ?? '0' },
    counts: counts.map(String),
  }));

const stored = (account: string) =>
  select<Record<'at' | 'campaign_id' | 'device' | 'spend', string>>(
    db.store,
    `SELECT toString(event_time) AS at, campaign_id, device, toString(spend) AS spend,
       arrayMap(n -> toString(n), [ad_requests, impressions, referrals, conversions]) AS counts
     FROM events WHERE advertiser_id = {account:String} ORDER BY event_time, device`,
    { account },
  );

const millis = (at: string) => Date.parse(`${at.replace(' ', 'T')}Z`);
const fromArray = arrow.vectorFromArray as (values: readonly unknown[], type: arrow.DataType) => arrow.Vector;
const vector = (type: arrow.DataType, cell: (record: Written) => unknown) =>
  fromArray(records.map(cell), type);
const floats = vector(new arrow.Float32(), ({ spend }) => spend && Number(spend));
function decimals(precision: number, scale: number): arrow.Vector {
  const data = new Int32Array(records.length * 4);
  for (const [n, { spend }] of records.entries()) {
    const value = Math.round(Number(spend ?? 0) * 10 ** scale);
    const sign = value < 0 ? -1 : 0;
    data.set([value, sign, sign, sign], n * 4);
  }
  const nullBitmap = Uint8Array.of(records.reduce((bits, { spend }, n) => bits | (Number(!!spend) << n), 0));
  const type = new arrow.Decimal(scale, precision, 128);
  return arrow.makeVector(arrow.makeData({ type, data, length: records.length, nullCount: 1, nullBitmap }));
}

type Codec = 'UNCOMPRESSED' | 'SNAPPY' | 'GZIP' | 'BROTLI' | 'ZSTD' | 'LZ4' | 'LZ4_RAW';
type ByArrow = readonly [time: arrow.DataType, kept: Kept, spend: arrow.Vector, codec: Codec, pages: 0 | 1];

const byArrowTypes: Readonly<Record<string, ByArrow>> = {
  seconds: [new arrow.TimestampSecond(), seconds, decimals(9, 2), 'UNCOMPRESSED', 0],
  milliseconds: [new arrow.TimestampMillisecond(), all, decimals(18, 4), 'SNAPPY', 1],
  microseconds: [new arrow.TimestampMicrosecond(), all, decimals(38, 6), 'ZSTD', 0],
  nanoseconds: [new arrow.TimestampNanosecond(), all, floats, 'LZ4_RAW', 1],
  'milliseconds in UTC': [new arrow.TimestampMillisecond('UTC'), all, decimals(38, 8), 'GZIP', 1],
  'microseconds in a zone': [new arrow.TimestampMicrosecond('Asia/Tokyo'), all, floats, 'BROTLI', 0],
  'nanoseconds in UTC': [new arrow.TimestampNanosecond('UTC'), all, decimals(10, 2), 'LZ4', 0],
  days: [new arrow.DateDay(), day, decimals(9, 2), 'ZSTD', 1],
};

/** With a dictionary, structures in structures, a list, unsigned numbers and two row groups. */
function byArrow(account: string, [time, kept, spend, codec, pages]: ByArrow, rows = records.length) {
  const on = new arrow.Struct([new arrow.Field('device', new arrow.LargeUtf8(), true)]);
  const id = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32());
  const campaign = new arrow.Struct([new arrow.Field('id', id, true), new arrow.Field('on', on, true)]);
  const table = new arrow.Table({
    at: vector(time, ({ at }) => millis(kept(at))),
    advertiser_id: vector(new arrow.Utf8(), () => account),
    campaign: vector(campaign, ({ campaign: id, device }) => ({ id, on: device && { device } })),
    ad_requests: vector(new arrow.Uint8(), ({ counts }) => counts[0]),
    impressions: vector(new arrow.Uint16(), ({ counts }) => counts[1]),
    referrals: vector(new arrow.Uint32(), ({ counts }) => counts[2]),
    conversions: vector(new arrow.Uint64(), ({ counts }) => BigInt(counts[3])),
    spend,
    tags: vector(new arrow.List(new arrow.Field('item', new arrow.Utf8(), true)), () => ['a', 'b']),
  });
  const properties = new WriterPropertiesBuilder()
    .setCompression(Compression[codec])
    .setWriterVersion(pages)
    .setMaxRowGroupSize(2)
    .build();
  return writeParquet(WasmTable.fromIPCStream(arrow.tableToIPC(table.slice(0, rows), 'stream')), properties);
}

const duckDb: Readonly<Record<string, readonly [kept: Kept, spend: string, options: string]>> = {
  TIMESTAMP: [all, 'DECIMAL(4, 2)', 'COMPRESSION snappy'],
  TIMESTAMP_S: [seconds, 'DECIMAL(9, 2)', 'COMPRESSION gzip, PARQUET_VERSION V2'],
  TIMESTAMP_MS: [all, 'DECIMAL(18, 6)', 'COMPRESSION brotli'],
  TIMESTAMP_NS: [all, 'DECIMAL(38, 10)', 'COMPRESSION zstd, PARQUET_VERSION V2'],
  TIMESTAMPTZ: [all, 'DOUBLE', 'COMPRESSION lz4_raw, PARQUET_VERSION V2'],
  DATE: [day, 'DECIMAL(18, 6)', 'COMPRESSION uncompressed'],
};

let duck: DuckDBConnection;
beforeAll(async () => {
  duck = await (await DuckDBInstance.create(':memory:')).connect();
});
afterAll(() => duck.closeSync());
const copied = (path: string, select: string, options = 'COMPRESSION zstd') =>
  duck.run(`COPY (${select}) TO '${path}' (FORMAT parquet, ${options})`);

function byDuckDb(
  path: string,
  account: string,
  type: string,
  [kept, spend, options]: readonly [Kept, string, string],
) {
  const literal = (value: unknown) => (value === null ? 'NULL' : `'${value}'`);
  const zone = type === 'TIMESTAMPTZ' ? '+00' : '';
  const rows = records.map(({ at, campaign, device, counts, spend: amount }) => {
    const on = device === null ? 'NULL' : `{device: CAST('${device}' AS ENUM('tv', 'phone'))}`;
    return `SELECT CAST('${kept(at)}${zone}' AS ${type}) AS at, '${account}' AS advertiser_id, {id: '${campaign}', "on": ${on}} AS campaign,
      ${counts[0]}::UTINYINT AS ad_requests, ${counts[1]}::USMALLINT AS impressions, ${counts[2]}::UINTEGER AS referrals,
      ${counts[3]}::UBIGINT AS conversions, CAST(${literal(amount)} AS ${spend}) AS spend, [1, 2] AS tags`;
  });
  return copied(path, rows.join(' UNION ALL '), options);
}

const map = ['event_time=at', 'campaign_id=campaign.id', 'device=campaign.on.device'];
const mapped = [...map.flatMap((each) => ['--map', each]), '--ignore-unknown'];
const one = () => [`--set=advertiser_id=${own.account}`, '--set=campaign_id=c', '--set=impressions=1'];

test('every type of time, number and text, in every packing, in structures and without value', async () => {
  const folder = join(own.home, 'files');
  mkdirSync(folder);
  for (const [name, how] of Object.entries(byArrowTypes)) {
    writeFileSync(join(folder, `${name}.snappy.parquet`), byArrow(`Arrow ${name}`, how));
  }
  for (const [type, how] of Object.entries(duckDb)) {
    await byDuckDb(join(folder, `${type}.parquet`), `DuckDB ${type}`, type, how);
  }
  copyFileSync(fixture('polars'), join(folder, 'polars.parquet'));
  writeFileSync(join(folder, 'no rows.parquet'), byArrow('', byArrowTypes.days as ByArrow, 0));
  const stdout = await outputOf(loader.ingest(...mapped, folder));
  const accounts = {
    ...Object.fromEntries(Object.entries(byArrowTypes).map(([name, [, kept]]) => [`Arrow ${name}`, kept])),
    ...Object.fromEntries(Object.entries(duckDb).map(([name, [kept]]) => [`DuckDB ${name}`, kept])),
    Polars: all,
  };
  expect(JSON.parse(stdout)).toMatchObject({ rows: Object.keys(accounts).length * records.length });
  const wanted = Object.entries(accounts).map(([account, kept]) => [account, recounted(kept)] as const);
  const found = wanted.map(async ([account]) => [account, await stored(account)] as const);
  expect(Object.fromEntries(await Promise.all(found))).toEqual(Object.fromEntries(wanted));
});

test('a time without a zone is in --timezone; a day and a time of day are two columns; a UUID is an id', async () => {
  const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
  const path = join(own.home, 'e.parquet');
  await copied(
    path,
    `SELECT DATE '2026-09-01' AS day, TIME '10:00:01.5' AS clock, UUID '${id}' AS campaign_id, 1 AS impressions`,
  );
  const expressions = { event_time: "concat({day}, ' ', {clock})" };
  const mapping = await loader.file(
    'm.json',
    JSON.stringify({ set: { advertiser_id: own.account }, expressions }),
  );
  await outputOf(loader.ingest('--mapping', mapping, '--timezone', 'Asia/Tokyo', path));
  expect(await stored(own.account)).toMatchObject([{ at: '2026-09-01 01:00:01.500', campaign_id: id }]);
});

test('a time with a zone is that moment also in an expression, whatever --timezone says', async () => {
  const path = join(own.home, 'e.parquet');
  const none = 'CAST(NULL AS TIMESTAMPTZ)';
  const at = (day: number) => `TIMESTAMPTZ '2026-09-0${day} 10:00:01.5+00'`;
  await copied(
    path,
    `SELECT ${at(1)} AS clicked, ${at(2)} AS converted UNION ALL SELECT ${at(3)}, ${none} UNION ALL SELECT ${none}, ${none}`,
  );
  const expressions = { event_time: "if({converted} != '', {converted}, {clicked})" };
  const mapping = await loader.file('m.json', JSON.stringify({ expressions }));
  const { stderr } = await loader.ingest(...one(), '--mapping', mapping, '--timezone', 'Asia/Tokyo', path);
  expect(stderr).toContain('row 3: event_time is required');
  expect((await stored(own.account)).map(({ at }) => at)).toEqual([
    '2026-09-02 10:00:01.500',
    '2026-09-03 10:00:01.500',
  ]);
});

test('Spark: a time of 96 bits that no event can have is a bad row', async () => {
  const { code, stderr } = await loader.ingest(...one(), '--map=event_time=a', fixture('int96_from_spark'));
  expect(code).toBe(4);
  expect((await stored(own.account)).map(({ at }) => at)).toEqual([
    '2024-01-01 01:00:00.000',
    '2024-01-01 20:34:56.123',
    '2024-12-30 23:00:00.000',
  ]);
  expect(stderr).toContain('row 3: event_time must be between 1971 and 2149, not "9999-12-31 03:00:00.000"');
  expect(stderr).toContain('row 5: event_time is required');
  expect(stderr).toContain('row 6: event_time must be');
});

test('parquet-mr: decimals of other physical types, and LZ4 in the frames of Hadoop', async () => {
  const flags = ['--set', 'event_time=2026-09-01', '--map', 'spend=value'];
  const files = ['byte_array_decimal', 'fixed_length_decimal_legacy'].map(fixture);
  const decimal = await loader.ingest(...one(), ...flags, ...files);
  expect(decimal.code, decimal.stderr).toBe(0);
  const spends = (await stored(own.account)).map(({ spend }) => Number(spend)).sort((a, b) => a - b);
  expect(spends).toEqual(Array.from({ length: 48 }, (_, n) => Math.floor(n / 2) + 1));
  const columns = ['--map', 'event_time=c0', '--map', 'device=c1', '--map', 'spend=v11'];
  const framed = await loader.ingest(...one(), ...columns, fixture('hadoop_lz4_compressed'));
  expect(framed.code, framed.stderr).toBe(0);
  expect((await stored(own.account)).slice(0, 4)).toMatchObject([
    { at: '2020-07-01 12:00:00.000', device: 'abc', spend: '42' },
    { at: '2020-07-01 12:00:00.000', device: 'def', spend: '7.7' },
    { at: '2020-07-01 12:00:01.000', device: 'abc', spend: '42.125' },
    { at: '2020-07-01 12:00:01.000', device: 'def', spend: '7.7' },
  ]);
});

test('an amount beyond the precision that its file names is rejected', async () => {
  const path = join(own.home, 'e.parquet');
  const amounts = ['123456.789012', '1.5'].map((amount) => `CAST(${amount} AS DECIMAL(18, 6)) AS spend`);
  const rows = amounts.map((amount) => `SELECT DATE '2026-09-01' AS event_time, ${amount}`);
  await copied(path, rows.join(' UNION ALL '), 'COMPRESSION uncompressed');
  const bytes = readFileSync(path);
  const stored64 = (unscaled: bigint) => {
    const value = Buffer.alloc(8);
    value.writeBigInt64LE(unscaled);
    return value;
  };
  const found = bytes.indexOf(stored64(123_456_789_012n));
  expect(found).toBeGreaterThan(0);
  stored64(5_000_000_000_000_000_000n).copy(bytes, found);
  writeFileSync(path, bytes);
  const { stderr } = await loader.ingest(...one(), path);
  expect(stderr).toContain('spend must be a decimal number with at most 12 digits before the point');
  expect(await stored(own.account)).toMatchObject([{ spend: '1.5' }]);
});

test('amounts in more bytes than their digits need are refused: ClickHouse would read halves of them as amounts', async () => {
  const path = join(own.home, 'e.parquet');
  const rows = "SELECT DATE '2026-09-01' AS event_time, CAST(number + 0.25 AS DECIMAL(18, 6)) AS spend";
  await copied(path, `${rows} FROM range(1000) AS t(number)`, 'COMPRESSION uncompressed');
  // The precision in the footer, beside the scale.
  const narrowed = readFileSync(path, 'latin1').replaceAll('\x15\x0c\x15\x24', '\x15\x0c\x15\x12');
  writeFileSync(path, narrowed, 'latin1');
  const { code, stderr } = await loader.ingest(...one(), path);
  expect(code).toBe(1);
  expect(stderr).toContain('column spend is a decimal of 9 digits in 8 bytes instead of 4; write');
  expect(await stored(own.account)).toEqual([]);
});

test.each([
  [18, 9, false],
  [9, 18, true],
  [undefined, 18, true],
])('the digits of an amount are those of its logical type: %s and %s', (precision, logical, isRead) => {
  const logical_type = { type: 'DECIMAL' as const, precision: logical, scale: 6 };
  const spend = { name: 'spend', type: 'INT64', repetition_type: 'REQUIRED', precision, logical_type };
  const metadata = { schema: [{ name: 'root', num_children: 1 }, spend] } as unknown as FileMetaData;
  expect(parquetColumns('e.parquet', metadata).map(({ read }) => read !== undefined)).toEqual([isRead]);
});

test('columns are read whatever they are called, also as a statement calls its own', async () => {
  const names = ['p_1', 'p_0', 'p__0', 'at_line', 'unknown', 'texts_valid', 'record', 't_device'];
  const path = join(own.home, 'names.parquet');
  const values = names.map((name, n) => `'${n + 1}' AS ${name}`);
  await copied(path, `SELECT '2026-09-01' AS event_time, ${values.join(', ')}`);
  const fields = ['spend', 'impressions', 'referrals', 'creative_id', 'campaign_id', 'event_id'];
  const mapping = {
    map: Object.fromEntries(fields.map((field, n) => [field, names[n]])),
    set: { advertiser_id: own.account },
    expressions: { conversions: '{record} + {t_device}' },
  };
  const file = await loader.file('names.json', JSON.stringify(mapping));
  await outputOf(loader.ingest('--mapping', file, path));
  const query = `SELECT toString(spend) AS spend, toString(impressions) AS impressions, toString(referrals) AS referrals,
      creative_id, campaign_id, event_id, toString(conversions) AS conversions
    FROM events WHERE advertiser_id = {account:String}`;
  const expected = Object.fromEntries(fields.map((field, n) => [field, `${n + 1}`]));
  expect(await select(db.store, query, { account: own.account })).toEqual([
    { ...expected, conversions: '15' },
  ]);
});

test('what cannot be read is refused with the column and what to do', async () => {
  const refused = async (file: string, ...flags: string[]) => {
    const { code, stderr } = await loader.ingest(...one(), '--ignore-unknown', ...flags, file);
    expect(code).not.toBe(0);
    expect(await loader.counted()).toBe(0);
    return stderr;
  };
  const at = ['--map', 'event_time=at'];
  const polars = fixture('polars');
  expect(await refused(polars, ...at, '--map', 'creative_id=tags')).toContain(
    `${polars}: column tags is a list; write it as plain values of one type`,
  );
  expect(await refused(polars, ...at, '--map', 'creative_id=campaign')).toMatch(
    /there is no column campaign; .* did you mean campaign\.id\?/,
  );
  const hadoop = fixture('hadoop_lz4_compressed');
  expect(await refused(hadoop, '--set', 'event_time=2026-09-01')).toContain(
    `${hadoop}: no field is read from any of its columns (--map, or "map" in a mapping, names one)`,
  );
  const bytes = readFileSync(hadoop).fill(0xff, 30, 60);
  expect(await refused(await loader.file('bad.parquet', bytes), '--map', 'event_time=c0')).toMatch(
    /bad\.parquet: column c0 cannot be read: .*; write the file anew\./,
  );
});

test('a day that ClickHouse has no date for is a bad row, and the others are loaded', async () => {
  const path = join(own.home, 'days.parquet');
  const days = ['0001-01-01', '2026-09-01', '9999-12-31'];
  await copied(
    path,
    `SELECT CAST(unnest(${JSON.stringify(days).replaceAll('"', "'")}) AS DATE) AS event_time`,
  );
  const { code, stderr } = await loader.ingest(...one(), path);
  expect(code, stderr).toBe(4);
  expect((await stored(own.account)).map(({ at }) => at)).toEqual(['2026-09-01 00:00:00.000']);
  expect(stderr).toContain('row 1: event_time must be');
  expect(stderr).toContain('row 3: event_time must be');
});
