import { beforeAll, describe, expect, test } from 'vitest';
import { fieldsOf, parametersOf } from '../../../src/http/export/parameters.ts';
import { exportPath } from '../../../src/http/export/paths.ts';
import { event, load } from '../../support/events.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db, { LINK_SECRET: 'of these tests, which is long enough' });

const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const names = ['plain', 'with, comma', 'a&b=c#d', 'größe +1%', '[x]*?', '__proto__'];

beforeAll(() =>
  load(
    db.store,
    names.flatMap((campaign_id, n) => [
      event({ campaign_id, device: 'mobile', spend: String(n), quantity: n + 1 }),
      event({ campaign_id, device: 'tv', event_time: '2026-03-09T00:00:00Z', spend: '1' }),
    ]),
  ),
);

const requests: Readonly<Record<string, object>> = {
  filters: { filters: { device: ['mobile'], campaign: names.slice(0, 5) } },
  'a filter by id': { filters: { campaign_id: ['__proto__'] } },
  metrics: { metrics: ['spent', 'cpm'] },
  order_by: {
    order_by: [
      { field: 'spent', direction: 'desc' },
      { field: 'campaign', direction: 'asc' },
      { field: 'device' },
    ],
  },
  'limit and totals': { limit: 3, totals: true },
  'no totals': { totals: false },
  ids: { ids: true, order_by: [{ field: 'campaign_id', direction: 'desc' }] },
  time_grain: { time_grain: 'week' },
  'changed_since, of all': { changed_since: '2001-01-01T00:00:00+01:00' },
  'changed_since, of none': { changed_since: '2101-01-01T00:00:00Z' },
  compare_to: { compare_to: 'previous_period' },
  'compare_to dates': { compare_to: { start_time: '2026-01-01', end_time: '2026-01-31' } },
  'fields that are null': {
    limit: 3,
    time_grain: null,
    as_of: null,
    metrics: null,
    filters: { device: null },
  },
  'all at once': {
    filters: { device: ['tv', 'mobile'] },
    metrics: ['spent'],
    order_by: [{ field: 'spent_change', direction: 'desc' }],
    limit: 2,
    totals: true,
    time_grain: 'month',
    compare_to: 'previous_year',
  },
};

const path = '/v1/campaigns/breakdowns/device_date';

describe.each(Object.entries(requests))('%s', (_, fields) => {
  const withoutTime = (answer: string) => answer.replace(/"last_update_time":"[^"]+"/, '');
  const token = () => service.token('advertiser');

  // What is read of an address is the same for all formats.
  const formats = 'totals' in fields ? (['json', 'csv'] as const) : (['json'] as const);
  test.each(formats)('says the same in an address as in a body: %s', async (format) => {
    const address = `${exportPath(path, format)}?${parametersOf({ ...march, ...fields })}`;
    const headers = { authorization: `Bearer ${await token()}` };
    const got = await fetch(`${service.url}${address}`, { headers });
    const accept = format === 'csv' ? 'text/csv' : 'application/json';
    const posted = await service.post(path, 'advertiser', { ...march, ...fields }, { accept });
    expect([got.status, posted.status]).toEqual([200, 200]);
    expect(withoutTime(await got.text())).toBe(withoutTime(await posted.text()));
    const said = ['adtally-row-count', 'adtally-totals', 'adtally-compare-to', 'adtally-column-types'];
    expect(said.map((name) => got.headers.get(name))).toEqual(said.map((name) => posted.headers.get(name)));
    const tag = got.headers.get('etag') ?? '';
    const again = await fetch(`${service.url}${address}`, { headers: { ...headers, 'if-none-match': tag } });
    expect(again.status).toBe(304);
    const plain = `${exportPath(path, format)}?${parametersOf(march)}`;
    const other = await fetch(`${service.url}${plain}`, { headers: { ...headers, 'if-none-match': tag } });
    const asPlain = 'totals' in fields && Object.keys(fields).length === 1;
    expect(other.status).toBe(asPlain ? 304 : 200);
  });
});

test.each(Object.entries(requests).filter(([, fields]) => 'filters' in fields))(
  '%s is part of a link',
  async (_, fields) => {
    const made = await service.post(exportPath(path, 'csv').replace('export', 'links'), 'advertiser', {
      ...march,
      ...fields,
    });
    const { link } = JSON.parse(await made.text()).result;
    const followed = await fetch(`${service.url}${link}`);
    const posted = await service.post(path, 'advertiser', { ...march, ...fields }, { accept: 'text/csv' });
    expect([followed.status, await followed.text()]).toEqual([200, await posted.text()]);
  },
);

test.each([
  ['limit=ten', 'limit'],
  ['limit=0', 'limit'],
  ['limit=1e3', 'limit'],
  ['totals=yes', 'totals'],
  ['metrics=', 'metrics.0'],
  ['metrics=spent,clicks', 'metrics.1'],
  ['metrics=spent&metrics=cpm', 'metrics'],
  ['order_by=--spent', 'order_by.0.field'],
  ['filters.site=x', 'filters.site'],
  ['filters.=x', 'filters.'],
  ['filters=x', 'filters'],
  ['filters.__proto__=x', 'filters.__proto__'],
  ['time_grain=year', 'time_grain'],
  ['compare_to=2026-01-01/2026-01-32', 'compare_to.end_time'],
  ['compare_to=last_week', 'compare_to'],
  ['compare_to=2026-01-01/2026-01-31/2026-02-28', 'compare_to'],
  // ISO 8859-1, which would be a campaign of another name.
  ['filters.campaign=gr%F6%DFe', undefined],
])('%s is refused and named', async (parameter, field) => {
  const headers = { authorization: `Bearer ${await service.token('advertiser')}` };
  const address = `${exportPath('/v1/campaigns/breakdowns/date', 'csv')}?${parametersOf(march)}&${parameter}`;
  const response = await fetch(`${service.url}${address}`, { headers });
  expect([response.status, JSON.parse(await response.text()).field]).toEqual([400, field]);
});

test('a percent sign that begins no escape stands for itself', async () => {
  const headers = { authorization: `Bearer ${await service.token('advertiser')}` };
  const given = `${parametersOf(march)}&filters.campaign=gr%C3%B6%C3%9Fe+%2B1%`;
  const response = await fetch(`${service.url}/v1/export/campaigns.json?${given}`, { headers });
  expect(JSON.parse(await response.text()).result.rows).toMatchObject([{ campaign: 'größe +1%' }]);
});

test('what is written is read again', () => {
  for (const fields of Object.values(requests)) {
    const written = String(parametersOf({ ...march, ...fields }));
    expect(String(parametersOf(fieldsOf(new URLSearchParams(written))))).toBe(written);
  }
});

test('a body has room for 40,000 values of a filter, which are written and read in one go', () => {
  const campaign = Array.from({ length: 40_000 }, (_, n) => String(n));
  const before = performance.now();
  expect(fieldsOf(parametersOf({ filters: { campaign } }))).toEqual({ filters: { campaign } });
  expect(performance.now() - before).toBeLessThan(5_000);
});
