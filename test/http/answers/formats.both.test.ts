import { execFileSync } from 'node:child_process';
import { parse } from 'lossless-json';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { type ReportFormatName, reportFormats } from '../../../src/report/formats.ts';
import { loadRows } from '../../support/events.ts';
import { thorough } from '../../support/mode.ts';
import { type JsonRow, type RowFormat, readers, type Table, tableOf } from '../../support/readers.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const formats = (Object.keys(reportFormats) as ReportFormatName[]).filter(
  (name): name is RowFormat => name !== 'json',
);
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const codings = ['identity', 'gzip', 'zstd', 'br'];
const undated = ['/v1/campaigns', '/v1/ad_units'];
const dated = ['/v1/campaigns/breakdowns/date', '/v1/ad_units/breakdowns/date'];
const widest = ['/v1/campaigns/breakdowns/device_creative_date', '/v1/ad_units/breakdowns/device_site_date'];
const asked = [...undated, ...dated, ...widest];
const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const year = { start_time: '2026-01-01', end_time: '2026-12-31' };
const everything = { start_time: '0001-01-01', end_time: '9999-12-31' };

/** Text that a writer or a reader of some format could take for something else. */
const texts = [
  ...['plain', '', ' spaces  ', 'comma, semicolon; tab\t', '"', 'say "hi"', "it's", 'back\\slash/ \\N \\n'],
  ...[
    'two\nlines',
    'two\r\nlines',
    '\n',
    '\r',
    '\0 \x01 \x7f',
    '\u2028',
    'bom \ufeff inside',
    'ünï – 日本語 😀 e\u0301',
  ],
  ...[
    'NULL',
    'null',
    'true',
    '007',
    '1e3',
    'NaN',
    '=1+1',
    '#',
    '2026-03-01',
    '$' + '{campaign:Raw} $$',
    '[]',
    '<a href="x">&amp;</a>',
    ']]>',
    '@SUM(A1)',
    '_x0041_x000a_ _x00e4_',
    '\ufffe\uffff',
    'שלום \u202e עולם',
    'ü'.repeat(1024),
  ],
];
const counts = ['0', '1', '7', '4294967296', '9007199254740993', '1152921504606846975', '1000'];
const amounts = [
  ...['0', '0.000001', '-0.000001', '12345678901234567890.123456', '-98765432109876543210.999999'],
  ...['100', '0.1', '1000000', '2.50'],
];
const cycle = (values: readonly string[], n: number) => values[n % values.length] ?? '';

// Every path in every coding; or each path as it is and in one coding, each coding on one path of each family.
const codingsOf = (path: number) =>
  codings.filter((_, n) => thorough || n === 0 || n === 1 + (path % (codings.length - 1)));
const emptyOnesIn = (coding: number) => asked.filter((_, n) => thorough || n >> 1 === coding % 3);
const large: readonly RowFormat[] = thorough ? formats : ['arrow'];

describe('a format of rows, against the JSON report of the same', () => {
  const db = useStore();
  const service = useService(db);

  /** A row of the finest rollup of each family; the coarser ones are filled from it. */
  const insert = (table: string, values: readonly unknown[]) =>
    db.store.insert({ table, values, format: 'JSONEachRow' });

  beforeAll(async () => {
    const rows = texts.flatMap((text, n) =>
      ['2026-02-28', '2026-03-01', '2026-03-02', '2149-06-06'].flatMap((day, d) =>
        ['desktop', cycle(texts, 3 * n + d)].map((device, m) => {
          const at = 8 * n + 2 * d + m;
          return {
            campaigns: {
              ...{ account_id: 'texts', day, campaign_id: text, device, creative_id: cycle(texts, at) },
              ...{ impressions: cycle(counts, at), conversions: cycle(counts, at >> 1) },
              ...{ referrals: cycle(counts, at >> 2), spent: cycle(amounts, at) },
            },
            ad_units: {
              ...{ account_id: 'texts', day, ad_unit_id: text, device, site_id: cycle(texts, at) },
              ...{ impressions: cycle(counts, at), ad_requests: cycle(counts, at >> 1) },
              ...{ referrals: cycle(counts, at >> 2), estimated_revenue: cycle(amounts, at) },
            },
          };
        }),
      ),
    );
    await insert(
      'campaigns_device_creative_date',
      rows.map(({ campaigns }) => campaigns),
    );
    await insert(
      'ad_units_device_site_date',
      rows.map(({ ad_units }) => ad_units),
    );
    // Half of the ids have a name, which is another text.
    const names = texts.filter((_, n) => n % 2).map((id, n) => ['texts', id, cycle(texts, 5 * n)]);
    for (const list of ['campaigns', 'creatives', 'ad_units', 'sites'] as const) {
      await loadRows(
        db.store,
        list,
        names.filter((row) => row.every(Boolean) && String(row[1]).length <= 128),
      );
    }
  });

  async function ask(
    path: string,
    account: string,
    range: unknown,
    format: ReportFormatName,
    coding = 'identity',
    // A short answer comes as gzip or as it is.
    packedAs = coding === 'gzip' ? 'gzip' : 'identity',
  ): Promise<Response> {
    const response = await service.post(path, account, range, {
      accept: reportFormats[format].mediaType,
      'accept-encoding': coding,
      // Reading many rows holds up this process, and the service in it, until a kept connection is too old.
      connection: 'close',
    });
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    expect(response.headers.get('content-encoding') ?? 'identity').toBe(packedAs);
    return response;
  }

  /** The bytes of the format; fetch unpacks what it knows, which is zstd only from Node.js 23.8 on. */
  async function unpacked(response: Response): Promise<Buffer> {
    const body = Buffer.from(await response.arrayBuffer());
    if (!body.subarray(0, 4).equals(zstdMagic)) return body;
    return execFileSync('zstd', ['-dc'], { input: body, maxBuffer: 1 << 30 });
  }

  /** The JSON report, numbers as they are written, and its columns, also when it has no rows. */
  async function jsonReport(path: string, account: string, range: unknown): Promise<Table> {
    const text = await (await ask(path, account, range, 'json')).text();
    const { result } = parse(text) as { result: { rows: JsonRow[]; column_metadata: { id: string }[] } };
    const columns = result.column_metadata.map(({ id }) => id);
    const table = tableOf(result.rows);
    if (table.rows.length > 0) expect(table.columns).toEqual(columns);
    return { columns, rows: table.rows };
  }

  describe.each(formats)('%s', (format) => {
    it.each(asked)('has the rows and columns of the JSON report, packed and not: %s', async (path) => {
      const table = await jsonReport(path, 'texts', march);
      expect(table.rows.length).toBeGreaterThanOrEqual(texts.length);
      for (const coding of codingsOf(asked.indexOf(path))) {
        const body = await unpacked(await ask(path, 'texts', march, format, coding));
        expect(await readers[format](body), coding).toEqual(table);
      }
    });

    it.each(asked)('has every row of a range wider than a date of the store can be: %s', async (path) => {
      const table = await jsonReport(path, 'texts', everything);
      const days = dated.includes(path) || widest.includes(path);
      expect(table.rows.at(-1)?.slice(0, 2)).toEqual(
        days ? ['2149-06-06', '2149-06-06'] : ['0001-01-01', '9999-12-31'],
      );
      expect(await readers[format](await unpacked(await ask(path, 'texts', everything, format)))).toEqual(
        table,
      );
    });

    it.each(codings)('without rows can be read and has its columns: %s', async (coding) => {
      for (const path of emptyOnesIn(codings.indexOf(coding))) {
        const response = await ask(path, 'nobody', year, format, coding);
        const table = await jsonReport(path, 'nobody', year);
        expect(table.rows).toEqual([]);
        // A line is a row, so columns without a row are in the header alone.
        const columns = format === 'ndjson' ? [] : table.columns;
        expect(await readers[format](await unpacked(response)), path).toEqual({ columns, rows: [] });
        const types = response.headers.get('adtally-column-types')?.split(', ');
        expect(types?.map((member) => member.replace(/=.*/, ''))).toEqual(table.columns);
      }
    });
  });

  it.each(large)('%s keeps the order of many rows, written by several threads', async (format) => {
    const rows = 120_000;
    await db.store.command({
      query: `INSERT INTO ad_units_device_site_date (account_id, day, ad_unit_id, device, site_id, impressions)
            SELECT 'large-${format}', toDate('2026-01-01') + intDiv(number, 20000), 'unit', 'mobile',
                   leftPad(toString(number), 6, '0'), number FROM numbers(${rows})`,
    });
    // As Parquet these rows are a short answer; a workbook is packed by itself.
    const packedAs = ['parquet', 'xlsx'].includes(format) ? 'identity' : 'zstd';
    const body = await unpacked(
      await ask(widest[1] ?? '', `large-${format}`, year, format, 'zstd', packedAs),
    );
    const { columns, rows: found } = await readers[format](body);
    const at = ['site', 'impressions'].map((name) => columns.indexOf(name));
    expect(found.length).toBe(rows);
    const wrong = found.findIndex((row, n) => at.some((column) => Number(row[column]) !== n));
    expect(wrong).toBe(-1);
  });

  test('the reports compared have what is hard to carry: every text, negative, tiny and large figures', async () => {
    const table = await jsonReport(widest[0] ?? '', 'texts', march);
    const values = new Set(table.rows.flat());
    for (const text of texts) expect(values, JSON.stringify(text)).toContain(text);
    for (const value of [...counts, ...amounts.slice(0, 8), '2.5']) expect(values).toContain(value);
  });
});
