import { writeFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import type { MappingFlags } from '../../ingest/mapping/read-mapping.ts';
import { avroFile, recordOf } from './avro.ts';

interface Row {
  readonly day: string;
  readonly campaign: string;
  readonly creative: string;
  readonly counts: readonly [impressions: number, referrals: number, conversions: number];
  readonly spend: number;
}

/** What each of the files says. */
export const records: readonly Row[] = [
  { day: '2026-09-01', campaign: '1', creative: 'Größe "46", neu', counts: [1204, 12, 2], spend: 1128.05 },
  { day: '2026-09-01', campaign: '2', creative: 'C:\\temp\\new', counts: [80, 0, 0], spend: 0.75 },
  { day: '2026-09-02', campaign: '1', creative: '19" tyres', counts: [406, 3, 1], spend: 6.96 },
  { day: '2026-09-02', campaign: '1', creative: 'ads\\banner', counts: [2, 1, 0], spend: 0.5 },
];

/** Counted again: the rows of a report by day and campaign. */
export const recounted = ['2026-09-01', '2026-09-02'].flatMap((day) =>
  ['1', '2'].flatMap((campaign) => {
    const own = records.filter((row) => row.day === day && row.campaign === campaign);
    const sum = (of: (row: Row) => number) => own.reduce((total, row) => total + of(row), 0);
    const counts = ([0, 1, 2] as const).map((n) => sum((row) => row.counts[n]));
    return own.length > 0 ? [[day, campaign, ...counts, sum(({ spend }) => spend)]] : [];
  }),
);

const names = ['Day', 'Campaign', 'Creative', 'Impr.', 'Clicks', 'Conv.', 'Cost'];
const map = {
  ...{ event_time: 'Day', campaign_id: 'Campaign', creative_id: 'Creative' },
  ...{ impressions: 'Impr.', referrals: 'Clicks', conversions: 'Conv.', spend: 'Cost' },
};
const cellsOf = ({ day, campaign, creative, counts, spend }: Row) => [
  day,
  campaign,
  creative,
  ...counts,
  spend,
];
const inQuotes = (cell: string) => `"${cell.replaceAll('"', '""')}"`;
/** With cells in quotes, if it is not told otherwise. */
export const table = (
  delimiter: string,
  cell: (cell: string | number, n: number, row: Row) => string = (text) =>
    typeof text === 'string' ? inQuotes(text) : `${text}`,
  { header = true, lineEnd = '\n' } = {},
) =>
  [
    ...(header ? [names.join(delimiter)] : []),
    ...records.map((row) =>
      cellsOf(row)
        .map((text, n) => cell(text, n, row))
        .join(delimiter),
    ),
  ]
    .map((line) => `${line}${lineEnd}`)
    .join('');

const grouped = (value: number, thousands: string, point: string) => {
  const [whole = '', rest] = String(value).split('.');
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, thousands);
  return rest === undefined ? groups : `${groups}${point}${rest}`;
};
const objects = records.map((row) =>
  Object.fromEntries(cellsOf(row).map((cell, n) => [names[n]?.replace('.', ''), cell])),
);
const members = { ...map, impressions: 'Impr', conversions: 'Conv' };
const ndjson = objects.map((each) => `${JSON.stringify(each)}\n`).join('');
/** As databases write text. */
const dumped = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t');
const bare = Object.fromEntries(Object.keys(map).map((field, n) => [field, `${n + 1}`]));
const commas = Object.fromEntries(
  Object.entries(map).flatMap(([field, name]) =>
    /Impr|Cost/.test(name) ? [[field, `replaceAll({${name}}, ',', '')`]] : [],
  ),
);
const { impressions: _, spend: __, ...texts } = map;
const { creative_id: ___, ...withoutCreative } = map;

/** A way of writing them, and what reads it. */
export interface Shape {
  readonly ending: string;
  readonly content: string | Buffer | ((path: string) => Promise<void>);
  readonly mapping: object;
  readonly flags?: MappingFlags;
  /** Records that are none. */
  readonly leftOut?: number;
}

export const shapes: Readonly<Record<string, Shape>> = {
  'CSV packed by gzip': { ending: 'csv.gz', content: gzipSync(table(',')), mapping: { map } },
  'CSV packed by brotli': { ending: 'csv.br', content: brotliCompressSync(table(',')), mapping: { map } },
  'CSV (Macintosh)': { ending: 'csv', content: table(',', undefined, { lineEnd: '\r' }), mapping: { map } },
  'CSV of a sheet in German': {
    ending: 'csv',
    content: table(';', (cell, n, { day }) => {
      if (n === 0) return String((Date.parse(day) - Date.UTC(1899, 11, 30)) / 86_400_000);
      return typeof cell === 'number' ? grouped(cell, '.', ',') : inQuotes(cell);
    }),
    mapping: {
      ...{ delimiter: ';', dates: 'excel', map: texts },
      expressions: {
        impressions: "replaceAll({Impr.}, '.', '')",
        spend: "replaceAll(replaceAll({Cost}, '.', ''), ',', '.')",
      },
    },
  },
  '"Unicode text" of Excel': {
    ending: 'tsv',
    content: Buffer.from(
      `\ufeff${table('\t', (cell) => (typeof cell === 'number' ? inQuotes(grouped(cell, ',', '.')) : /["\t,]/.test(cell) ? inQuotes(cell) : cell), { lineEnd: '\r\n' })}`,
      'utf16le',
    ),
    mapping: { map: texts, expressions: commas },
  },
  'TSV of a platform': { ending: 'tsv', content: table('\t', String), mapping: { map } },
  'dump of a database': {
    ending: 'tsv',
    content: `${table('\t', (cell) => dumped(`${cell}`), { header: false })}2026-09-01\t2\t\\N\t0\t0\t0\t0\n`,
    mapping: { escapes: true, header: false, map: bare },
  },
  'dump of MySQL between commas': {
    ending: 'csv',
    content: table(',', (cell) => dumped(`${cell}`).replaceAll(',', '\\,'), { header: false }),
    mapping: { escapes: true, header: false, map: bare },
  },
  'windows-1252': {
    ending: 'csv',
    content: Buffer.from(table(','), 'latin1'),
    mapping: { map },
    flags: { encoding: 'windows-1252' },
  },
  'an export with lines above and below its table': {
    ending: 'csv',
    content: `Report\nAll time\n\n${table(',')}"Total",,,1692,16,3,1136.26\n\n"© 2026 The platform"\nReport Time:,now\n`,
    mapping: { skip_lines: 3, map, where: "match({Day}, '^[0-9]')" },
    leftOut: 3,
  },
  'times with hours of one digit between blanks': {
    ending: 'log.csv',
    content: table('   ', (cell, n) =>
      n === 0 ? `"${cell} 5:00:00"` : n === 2 ? `"${`${cell}`.replaceAll('"', '\\"')}"` : `${cell}`,
    ),
    mapping: {
      delimiter: 'blanks',
      map: withoutCreative,
      expressions: { creative_id: `replaceAll({Creative}, '\\\\"', '"')` },
    },
  },
  'days as midnight of a zone': {
    ending: 'csv',
    content: table(',', (cell, n) =>
      n === 0 ? `${cell} 00:00:00` : typeof cell === 'string' ? inQuotes(cell) : `${cell}`,
    ),
    mapping: { map },
    flags: { timezone: 'America/New_York' },
  },
  'a record a line': { ending: 'ndjson', content: ndjson, mapping: { map: members } },
  'members of members': {
    ending: 'ndjson',
    content: records
      .map(({ day, campaign, creative, counts, spend }) => {
        const [imp, clicks, conversions] = counts;
        return `${JSON.stringify({ ts: Date.parse(day), campaign: { id: campaign, ads: [{ id: creative }] }, imp, clicks, conversions, price: { amount: spend } })}\n`;
      })
      .join(''),
    mapping: {
      map: {
        ...{
          event_time: 'ts',
          campaign_id: 'campaign.id',
          creative_id: 'campaign.ads.0.id',
          impressions: 'imp',
        },
        ...{ referrals: 'clicks', conversions: 'conversions', spend: 'price.amount' },
      },
    },
  },
  'a click and its later conversions in one record': {
    ending: 'ndjson',
    content: ndjson,
    mapping: {
      map: { campaign_id: 'Campaign', creative_id: 'Creative', event_time: 'Day' },
      events: [
        { map: { impressions: 'Impr', referrals: 'Clicks', spend: 'Cost' } },
        { map: { conversions: 'Conv' }, where: "{Conv} != '0'" },
      ],
    },
    leftOut: 2,
  },
  'an array on one line': { ending: 'json', content: JSON.stringify(objects), mapping: { map: members } },
  'an array, pretty-printed': {
    ending: 'json',
    content: JSON.stringify(objects, null, 2),
    mapping: { map: members },
  },
  'an answer of an API': {
    ending: 'json',
    content: JSON.stringify({ data: objects, paging: { cursors: { after: 'b' } } }),
    mapping: { map: members },
    flags: { records: 'data' },
  },
  'answers one after another, further inside': {
    ending: 'json',
    content: objects.map((each) => JSON.stringify({ report: { of: [1], rows: [each] } }, null, 1)).join('\n'),
    mapping: { map: members, records: 'report.rows' },
  },
  Avro: {
    ending: 'avro',
    content: async (path) => {
      const whole = Object.fromEntries(['Impr', 'Clicks', 'Conv'].map((name) => [name, 'long']));
      const schema = recordOf({
        Day: 'string',
        Campaign: 'string',
        Creative: ['null', 'string'],
        ...whole,
        Cost: 'double',
      });
      writeFileSync(path, await avroFile(schema, objects, { codec: 'deflate' }));
    },
    mapping: { map: members },
  },
  Parquet: {
    ending: 'parquet',
    content: async (path) => {
      writeFileSync(`${path}.ndjson`, ndjson);
      const instance = await DuckDBInstance.create(':memory:');
      const connection = await instance.connect();
      const select =
        'SELECT CAST(Day AS DATE) AS Day, {id: Campaign} AS Campaign, * EXCLUDE (Day, Campaign) FROM';
      await connection.run(`COPY (${select} read_json('${path}.ndjson')) TO '${path}' (FORMAT parquet)`);
      connection.closeSync();
      instance.closeSync();
    },
    mapping: { map: { ...members, campaign_id: 'Campaign.id' } },
  },
};
