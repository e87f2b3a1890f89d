import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { intervals, unconfirmedDates } from '../../../src/http/report/headers.ts';
import { type ReportFormatName, reportFormats } from '../../../src/report/formats.ts';
import { paths } from '../../support/oracle.ts';
import { seededRandom } from '../../support/random.ts';
import { type Report, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);

type RowFormat = Exclude<ReportFormatName, 'json'>;
const formats = (Object.keys(reportFormats) as ReportFormatName[]).filter(
  (name): name is RowFormat => name !== 'json',
);
const undated = ['/v1/campaigns', '/v1/ad_units'];
const widest = ['/v1/campaigns/breakdowns/device_creative_date', '/v1/ad_units/breakdowns/device_site_date'];
const year = { start_time: '2026-01-01', end_time: '2026-12-31' };
const everything = { start_time: '0001-01-01', end_time: '9999-12-31' };

/** A row of the finest rollup of each family; the coarser ones are filled from it. */
const insert = (table: string, values: readonly unknown[]) =>
  db.store.insert({ table, values, format: 'JSONEachRow' });

async function ask(
  path: string,
  account: string,
  range: unknown,
  format: ReportFormatName,
): Promise<Response> {
  const response = await service.post(path, account, range, { accept: reportFormats[format].mediaType });
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

describe('the headers', () => {
  const body = { start_time: '2026-03-01', end_time: '2026-03-05' };

  it.each(formats)('of %s say what it is and how to save it', async (format) => {
    const before = Math.floor(Date.now() / 1000) * 1000;
    const { headers } = await ask('/v1/ad_units/breakdowns/devices_and_site', 'texts', body, format);
    const { mediaType, extension } = reportFormats[format];
    expect(headers.get('content-type')).toBe(format === 'csv' ? 'text/csv; charset=utf-8' : mediaType);
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="ad_units_devices_and_site_2026-03-01_2026-03-05.${extension}"`,
    );
    expect(headers.get('vary')).toMatch(/^Accept, Accept-Encoding$/i);
    const [, time] = /^"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)"$/.exec(text(headers, 'last-update-time')) ?? [];
    expect(Date.parse(time ?? '')).toBeGreaterThanOrEqual(before);
    expect(Date.parse(time ?? '')).toBeLessThanOrEqual(Date.now());
  });

  it('of JSON leave to the envelope what it says', async () => {
    const { headers } = await ask('/v1/campaigns', 'texts', body, 'json');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('vary')).toMatch(/^Accept, Accept-Encoding$/i);
    expect([...headers.keys()].filter((name) => /^adtally|disposition/.test(name))).toEqual([]);
  });

  it.each(paths)('give the columns of %s, their order and types', async (path) => {
    const { column_metadata } = await envelope(path, 'texts', body);
    const format = formats[paths.indexOf(path) % formats.length] ?? 'csv';
    const { headers } = await ask(path, 'texts', body, format);
    expect(types(headers)).toEqual(column_metadata);
    const name = path
      .split('/')
      .slice(2)
      .filter((part) => part !== 'breakdowns')
      .join('_');
    expect(headers.get('content-disposition')).toContain(`"${name}_2026-03-01_2026-03-05.`);
  });
});

describe('the unconfirmed dates in a header', () => {
  const days = (first: string, count: number, step = 1) =>
    Array.from({ length: count }, (_, n) => dayAt(Date.parse(first) / 86_400_000 + step * n));
  const accounts = {
    'alternating-days': days('2026-01-01', 183, 2),
    'all-days': days('2026-01-01', 365),
    'some-runs': [...days('2025-12-30', 5), ...days('2026-02-27', 3), '2026-05-05', ...days('2026-12-31', 2)],
    'no-days': [],
  };
  beforeAll(async () => {
    for (const [account_id, days] of Object.entries(accounts)) {
      const rows = days.map((day) => ({ account_id, day, unconfirmed_at: '2026-12-31 00:00:00' }));
      await insert('campaigns_device_creative_date', rows);
      await insert('ad_units_device_site_date', rows.slice(1));
    }
  });

  it.each(Object.keys(accounts))('are those of the envelope, a year of %s', async (account) => {
    for (const [n, path] of [...undated, ...widest].entries()) {
      const { unconfirmed_revenue_dates } = await envelope(path, account, year);
      const { headers } = await ask(path, account, year, formats[n + 1] ?? 'csv');
      expect(unconfirmed(headers)).toEqual(unconfirmed_revenue_dates);
    }
  });

  it('are runs as intervals within the range, single days as days, and nothing when there are none', async () => {
    const header = async (account: string, range: unknown) =>
      text((await ask('/v1/campaigns', account, range, 'csv')).headers, 'unconfirmed-revenue-dates');
    expect(await header('all-days', year)).toBe('"2026-01-01/2026-12-31"');
    expect(await header('some-runs', year)).toBe(
      '"2026-01-01/2026-01-03", "2026-02-27/2026-03-01", "2026-05-05", "2026-12-31"',
    );
    expect(await header('some-runs', everything)).toMatch(
      /^"2025-12-30\/2026-01-03", .*"2026-12-31\/2027-01-01"$/,
    );
    expect(await header('no-days', year)).toBe('');
    // The most that a year can take: Node's clients accept 16 KB of headers.
    expect((await header('alternating-days', year)).length).toBe(183 * '"2026-01-01", '.length - 2);
  });
});

test('intervals hold exactly the days they were made of, in as few runs as there can be', () => {
  const random = seededRandom(20_261_120);
  for (let round = 0; round < 500; round++) {
    const [from, length, share] = [Math.floor(random() * 65_000), Math.floor(random() * 500), random()];
    const days = Array.from({ length }, (_, n) => dayAt(from + n)).filter(() => random() < share);
    const runs = intervals(days).map((run) => expand(run));
    expect(runs.flat()).toEqual(days);
    const gaps = days.filter((day, n) => n > 0 && dayAt(Date.parse(day) / 86_400_000 - 1) !== days[n - 1]);
    expect(runs.length).toBe(days.length && gaps.length + 1);
  }
});

test('a list of days that is too long for a header loses none: it is one interval that is marked as partly', () => {
  const days = Array.from({ length: 3_000 }, (_, n) => dayAt(14_000 + 2 * n));
  const fits = days.slice(0, 800);
  expect(unconfirmedDates(fits)).toBe(fits.map((day) => `"${day}"`).join(', '));
  expect(unconfirmedDates(days)).toBe(`"${days[0]}/${days.at(-1)}";partly`);
});

describe('the caller chooses the format', () => {
  it.each([
    [undefined, 'json'],
    ['*/*', 'json'],
    ['application/*', 'json'],
    ['text/*', 'csv'],
    ['Text/CSV', 'csv'],
    ['text/html, application/xhtml+xml, */*;q=0.8', 'json'],
    ['application/json;q=0.5, text/csv', 'csv'],
    ['application/json, text/csv', 'json'],
    ['text/csv, application/json', 'csv'],
    ['text/csv;q=0.2, application/x-ndjson;q=0.3', 'ndjson'],
    ['application/json;q=0, */*;q=0.1', 'ndjson'],
    ['application/vnd.apache.parquet;q=0.9, */*;q=0.1', 'parquet'],
    ['image/png, application/vnd.apache.arrow.stream', 'arrow'],
    ['application/*;q=0.1, text/*;q=0.2', 'csv'],
    ['application/json; charset=utf-8', 'json'],
    ['text/csv;charset=UTF-8; header=present;q=0.9, image/png', 'csv'],
    ['', 'json'],
  ] as const)('Accept: %s gives %s', async (accept, format) => {
    const answer = await openAccepting(accept);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toMatch(new RegExp(`^${reportFormats[format].mediaType}(;|$)`));
    answer.resume();
  });

  it.each(['text/html', 'application/xml, image/*', 'application/json;q=0', 'csv', '*/*;q=0'])(
    'Accept: %s is 406 and told what there is',
    async (accept) => {
      const response = await service.post('/v1/campaigns', 'texts', year, { accept });
      expect(response.status).toBe(406);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      const problem = (await response.json()) as Record<string, string>;
      expect(problem).toMatchObject({ title: 'Not Acceptable', status: 406, code: 'not_acceptable' });
      for (const { mediaType } of Object.values(reportFormats)) expect(problem.detail).toContain(mediaType);
    },
  );

  it.each(formats)('and learns of a mistake as a problem, not as %s', async (format) => {
    const accept = { accept: reportFormats[format].mediaType };
    const response = await service.post('/v1/campaigns', 'texts', { start_time: 'x' }, accept);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      400,
      'application/problem+json',
    ]);
  });
});

/** What JSON says beside the rows. */
function envelope(path: string, account: string, { start_time, end_time }: typeof year): Promise<Report> {
  return service.report(path, account, start_time, end_time);
}

/** Over a bare connection, because fetch always sends an `Accept`. */
async function openAccepting(accept: string | undefined): Promise<IncomingMessage> {
  const headers = {
    authorization: `Bearer ${await service.token('texts')}`,
    'content-type': 'application/json',
    ...(accept !== undefined && { accept }),
  };
  const sent = request(`${service.url}/v1/campaigns`, { method: 'POST', agent: false, headers });
  sent.end(JSON.stringify(year));
  const [answer] = await once(sent, 'response');
  return answer;
}

const dayAt = (daysSince1970: number) => new Date(daysSince1970 * 86_400_000).toISOString().slice(0, 10);

/** Every day of an ISO 8601 interval, or the one day. */
function expand(run: string): string[] {
  const [first = '', last = first] = run.split('/');
  const length = (Date.parse(last) - Date.parse(first)) / 86_400_000 + 1;
  return Array.from({ length }, (_, n) => dayAt(Date.parse(first) / 86_400_000 + n));
}

/** An Adtally header, which must be there. */
function text(headers: Headers, name: string): string {
  const value = headers.get(`adtally-${name}`);
  if (value === null) throw new Error(`no adtally-${name}`);
  return value;
}

/** A dictionary of tokens (RFC 9651 §3.2). */
function types(headers: Headers): { id: string; type: string }[] {
  return text(headers, 'column-types')
    .split(', ')
    .map((member) => {
      const [, id = '', type = ''] = /^([a-z_]+)=([A-Z][a-z]+)$/.exec(member) ?? [];
      return { id, type };
    });
}

/** A list of strings (RFC 9651 §3.1), every interval as its days. */
function unconfirmed(headers: Headers): string[] {
  const members = text(headers, 'unconfirmed-revenue-dates').split(', ').filter(Boolean);
  for (const member of members) expect(member).toMatch(/^"\d{4}-\d\d-\d\d(\/\d{4}-\d\d-\d\d)?"$/);
  return members.flatMap((member) => expand(member.slice(1, -1)));
}
