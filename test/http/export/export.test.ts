import { beforeAll, describe, expect, test } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { exportedReports } from '../../../src/http/export/paths.ts';
import { reportFormats } from '../../../src/report/formats.ts';
import { event, load, loadRows } from '../../support/events.ts';
import { type TestService, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const other = useService(db);
const few = useService(db, { RATE_LIMIT_REQUESTS: '2' });
const withoutMemory = useService(db, { ANSWER_CACHE_MEGABYTES: '0' });

const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const search = new URLSearchParams(march);
const csv = `/v1/export/campaigns/device_date.csv?${search}`;

beforeAll(async () => {
  const account = { advertiser_id: 'both', publisher_id: 'both', site_id: 's', creative_id: 'c' };
  await load(db.store, [
    event({ ...account, spend: '1.25', revenue: '0.75', device: 'mobile' }),
    event({ ...account, event_time: '2026-03-05T00:00:00Z', revenue: '2', device: 'tv' }),
  ]);
});

interface Asking {
  readonly method?: string;
  readonly account?: string;
  readonly headers?: Record<string, string>;
  readonly from?: TestService;
}

async function ask(path: string, { method = 'GET', account = 'both', headers, from = service }: Asking = {}) {
  const authorization = `Bearer ${await from.token(account)}`;
  const all = { authorization, 'accept-encoding': 'identity', ...headers };
  return fetch(`${from.url}${path}`, { method, headers: all });
}

const withoutTime = (answer: string) => answer.replace(/"last_update_time":"[^"]+"/, '');

// All paths are made in one way: every report in one format, and two in all of them.
const exports = exportedReports(catalog).filter(
  ({ path, format }) => format === 'csv' || /campaigns\.|device_site_date/.test(path),
);

test.each(exports.map((each) => [each.path, each] as const))(
  'GET %s is the answer of the endpoint',
  async (path, { endpoint, format }) => {
    const exported = await ask(`${path}?${search}`);
    const accept = reportFormats[format].mediaType;
    const posted = await service.post(endpoint.path, 'both', march, {
      accept,
      'accept-encoding': 'identity',
    });
    expect(exported.status).toBe(200);
    expect(exported.headers.get('content-type')).toBe(posted.headers.get('content-type'));
    const [get, post] = [await exported.arrayBuffer(), await posted.arrayBuffer()];
    const [got = '', asked] = [get, post].map((bytes) => withoutTime(Buffer.from(bytes).toString('latin1')));
    expect(got.length).toBeGreaterThan(50);
    expect(got).toBe(asked);
  },
);

test('the report of an export is the same object each time: by it the schema of its requests is found, which takes long to make', () => {
  const breakdowns = () => exportedReports(catalog).map(({ endpoint }) => endpoint.breakdown);
  const first = breakdowns();
  expect(breakdowns().filter((each, n) => each !== first[n])).toEqual([]);
});

test('the endpoints of the contract take POST only, and exports do not', async () => {
  const get = await ask(`/v1/campaigns?${search}`);
  expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  const post = await service.post(csv, 'both', march);
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test.each([
  ['a range that is missing', '', 'start_time'],
  ['a day that does not exist', 'start_time=2026-02-30&end_time=2026-03-01', 'start_time'],
  ['an inverted range', 'start_time=2026-03-02&end_time=2026-03-01', 'end_time'],
  ['a parameter that nobody knows', `${search}&devise=mobile`, 'devise', 'is no parameter of an export'],
  [
    'a parameter that is mistyped',
    `${search}&filter.device=mobile`,
    'filter.device',
    'did you mean filters.FIELD?',
  ],
  ['one day to compare with', `${search}&compare_to=2026-08-31`, 'compare_to', '(in an address two days'],
  ['a parameter given twice', `${search}&end_time=2026-03-31`, 'end_time'],
  ['the name of something else', `${search}&__proto__=1`, '__proto__'],
])('%s is refused and named', async (_, parameters, field, reason = '') => {
  const response = await ask(`/v1/export/campaigns.csv?${parameters}`, { headers: { 'if-none-match': '*' } });
  expect(response.status).toBe(400);
  const detail = expect.stringContaining(reason);
  expect(JSON.parse(await response.text())).toMatchObject({ code: 'invalid_request', field, detail });
});

describe('HEAD', () => {
  test('computes nothing, and tells no length: a client that knows one would ask for parts', async () => {
    const path = `/v1/export/ad_units/site_date.parquet?${search}`;
    const account = 'asked first by HEAD';
    for (const _ of ['before it is in memory', 'and after']) {
      const head = await ask(path, { method: 'HEAD', account });
      expect([head.status, head.headers.get('content-length')]).toEqual([200, null]);
      expect(head.headers.get('cache-status')).toBe('adtally; fwd=method');
      expect(await head.text()).toBe('');
      await (await ask(path, { account })).arrayBuffer();
    }
  });

  test('tells no coding, which GET chooses by what it sends', async () => {
    const path = `/v1/export/campaigns.xlsx?${search}`;
    for (const method of ['HEAD', 'GET']) {
      const response = await ask(path, { method, headers: { 'accept-encoding': 'zstd' } });
      expect([method, response.status, response.headers.get('content-encoding')]).toEqual([
        method,
        200,
        null,
      ]);
      await response.arrayBuffer();
    }
  });

  test('of another account shows nothing of it', async () => {
    await ask(csv);
    const response = await ask(csv, { method: 'HEAD', account: 'nobody' });
    expect([response.status, response.headers.get('content-length')]).toEqual([200, null]);
  });
});

describe('304', () => {
  test('says that nothing has changed, of whatever service, format and coding, and costs no request', async () => {
    await load(db.store, [event({ advertiser_id: 'quiet' })]);
    const asking = { account: 'quiet', from: few };
    const first = await ask(csv, asking);
    const tag = first.headers.get('etag') ?? '';
    expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
    await first.text();
    for (let n = 0; n < 5; n++) {
      const response = await ask(csv, { ...asking, headers: { 'if-none-match': `"x", ${tag}` } });
      expect([response.status, await response.text()]).toEqual([304, '']);
    }
    for (const from of [service, other, withoutMemory]) {
      for (const coding of ['gzip', 'identity']) {
        const headers = { 'if-none-match': tag, 'accept-encoding': coding };
        expect((await ask(csv, { account: 'quiet', from, headers })).status).toBe(304);
      }
    }
    // Strong from the first answer on, which is in memory, too.
    const kept = (await ask(csv, asking)).headers.get('etag') ?? '';
    expect(kept).toBe(tag);
    const headers = { 'if-none-match': kept };
    expect((await ask(csv, { ...asking, headers })).status).toBe(304);
    expect((await ask(csv, asking)).status).toBe(429);
  });

  test('as of a moment, which ClickHouse has to tell, costs a request', async () => {
    const path = `${csv}&as_of=${new Date().toISOString()}`;
    const asking = { account: 'quiet then', from: few };
    const tag = (await ask(path, asking)).headers.get('etag') ?? '';
    const again = () => ask(path, { ...asking, headers: { 'if-none-match': tag } });
    expect([(await again()).status, (await again()).status]).toEqual([304, 429]);
  });

  test('is of this report, range and account alone', async () => {
    const tag = (await ask(csv)).headers.get('etag') ?? '';
    for (const [path, account] of [
      [csv.replace('.csv', '.ndjson'), 'both'],
      [csv.replace('device_date', 'creative_date'), 'both'],
      [csv.replace('03-31', '03-30'), 'both'],
      [csv, 'nobody'],
    ] as const) {
      const response = await ask(path, { account, headers: { 'if-none-match': tag } });
      expect([path, response.status]).toEqual([path, 200]);
      await response.text();
    }
  });

  test('no longer, as soon as rows, names or confirmations change', async () => {
    const path = `/v1/export/ad_units/site.json?${search}`;
    const asking = { account: 'moving' };
    let tag = (await ask(path, asking)).headers.get('etag') ?? '';
    const changes = [
      () => load(db.store, [event({ publisher_id: 'moving', site_id: 's', revenue: '1' })]),
      () => loadRows(db.store, 'sites', [['moving', 's', 'Site']]),
      () => loadRows(db.store, 'confirmations', [['moving', '2026-03-01']]),
    ];
    for (const change of changes) {
      expect((await ask(path, { ...asking, headers: { 'if-none-match': tag } })).status).toBe(304);
      await change();
      const response = await ask(path, { ...asking, headers: { 'if-none-match': tag } });
      expect(response.status).toBe(200);
      tag = response.headers.get('etag') ?? '';
      await response.text();
    }
  });

  test('is for those alone who have a token', async () => {
    const response = await fetch(`${service.url}${csv}`, { headers: { 'if-none-match': '*' } });
    expect(response.status).toBe(401);
  });
});

test('a condition on the time of the last change changes nothing: exports tell no such time (RFC 9110 §13.1.4)', async () => {
  const answer = async (headers: Record<string, string>) => {
    const response = await ask(csv, { headers });
    return { status: response.status, body: await response.text() };
  };
  const whole = await answer({});
  expect(await answer({ 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' })).toEqual(whole);
});
