import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { endpoints } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { RequestReader, requestSchema } from '../../../src/report/request.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const service = useService(useStore());
const october = { start_time: '2026-10-01', end_time: '2026-10-31' };
const undated = '/v1/campaigns/breakdowns/device';
const dated = '/v1/campaigns/breakdowns/creative_date';
const dates = (start_time: unknown, end_time: unknown) => ({ start_time, end_time });

/** The fields of a body, the field that is at fault, and a part of what is said of it. */
type Case = readonly [fields: Record<string, unknown>, field: string, reason: string];

const everywhere: readonly Case[] = [
  [{ filters: [] }, 'filters', 'an object'],
  [{ filter: { device: ['mobile'] } }, 'filter', 'did you mean filters?'],
  [{ 'filters.device': ['mobile'] }, 'filters.device', 'did you mean filters?'],
  [{ metric: ['spent'] }, 'metric', 'did you mean metrics?'],
  [{ orderBy: ['spent'] }, 'orderBy', 'did you mean order_by?'],
  [{ order: ['spent'] }, 'order', 'did you mean order_by?'],
  [{ Limit: 3 }, 'Limit', 'did you mean limit?'],
  [{ total: true }, 'total', 'did you mean totals?'],
  [{ grain: 'week' }, 'grain', 'did you mean time_grain?'],
  [{ time_grian: 'week' }, 'time_grian', 'did you mean time_grain?'],
  [{ since: '2026-01-01T00:00:00Z' }, 'since', 'did you mean changed_since?'],
  [{ compare: 'previous_year' }, 'compare', 'did you mean compare_to?'],
  [{ order_by: [{ field: 'spent', dir: 'desc' }] }, 'order_by.0.dir', 'field and direction'],
  [{ compare_to: { ...dates('2026-09-01', '2026-10-01'), end: 1 } }, 'compare_to.end', 'end_time'],
  [
    { filters: { site: ['x'] } },
    'filters.site',
    'campaign, campaign_id, device, creative_headline, creative_id',
  ],
  [{ filters: { campaigns: ['x'], device: ['x'] } }, 'filters.campaigns', 'filtered by'],
  [{ filters: { device: 'mobile' } }, 'filters.device', 'a list'],
  [{ filters: { device: [] } }, 'filters.device', 'a value'],
  [{ filters: { device: ['mobile', 3] } }, 'filters.device.1', 'text'],
  [{ metrics: 'spent' }, 'metrics', 'a list'],
  [{ metrics: [] }, 'metrics', 'a metric'],
  [{ metrics: ['spent', 'cost'] }, 'metrics.1', 'cpa, cpc, cpm'],
  [{ metrics: ['estimated_revenue'] }, 'metrics.0', 'cpa, cpc, cpm'],
  [{ metrics: ['spent', 'spent'] }, 'metrics', 'twice'],
  [{ order_by: 'spent' }, 'order_by', 'a list'],
  [{ order_by: ['-spent'] }, 'order_by.0', 'field and direction'],
  [{ order_by: [{}] }, 'order_by.0.field', 'one of'],
  [{ order_by: [{ field: 'cost' }] }, 'order_by.0.field', 'one of start_time'],
  [{ order_by: [{ field: 'site' }] }, 'order_by.0.field', 'one of start_time'],
  [{ order_by: [{ field: 'spent', direction: 'DESC' }] }, 'order_by.0.direction', 'asc or desc'],
  [{ order_by: [{ field: 'spent' }, { field: 'spent_change' }] }, 'order_by.1.field', 'compare_to'],
  [{ order_by: [{ field: 'spent', direction: 'desc' }, { field: 'spent' }] }, 'order_by', 'twice'],
  [{ limit: 0 }, 'limit', 'at least 1'],
  [{ limit: -1 }, 'limit', 'at least 1'],
  [{ limit: 1.5 }, 'limit', 'whole number'],
  [{ limit: '10' }, 'limit', 'whole number'],
  [{ limit: 10_000_001 }, 'limit', 'at most'],
  [{ totals: 'true' }, 'totals', 'true or false'],
  [{ compare_to: 'last_week' }, 'compare_to', 'previous_period, previous_weeks, previous_month'],
  [{ end_time: '\\', compare_to: 'previous_year' }, 'end_time', 'exists'],
  [{ start_time: '2026-02-30', compare_to: 'previous_period' }, 'start_time', 'exists'],
  [{ filters: { device: [null] } }, 'filters.device.0', 'text'],
  [{ start_time: null }, 'start_time', 'is required'],
  [{ compare_to: {} }, 'compare_to.start_time', 'is required'],
  [{ compare_to: dates('2026-09-31', '2026-10-01') }, 'compare_to.start_time', 'exists'],
  [{ compare_to: dates('2026-09-02', '2026-09-01') }, 'compare_to.end_time', 'before start_time'],
  [{ ...dates('0000-01-01', '9999-12-31'), compare_to: 'previous_period' }, 'compare_to', 'the year 0'],
  [{ ...dates('0000-03-01', '0000-03-01'), compare_to: 'previous_year' }, 'compare_to', 'the year 0'],
  [{ end_time: '2026-09-30', limit: 1 }, 'end_time', 'before start_time'],
];

async function refusal(path: string, fields: Record<string, unknown>): Promise<unknown> {
  const response = await service.post(path, 'account', { ...october, ...fields });
  return { status: response.status, ...JSON.parse(await response.text()) };
}

const breakdownOf = (path: string) => {
  const endpoint = endpoints(catalog).find((each) => each.path === path);
  if (!endpoint) throw new Error(`there is no ${path}`);
  return endpoint.breakdown;
};

test('of a body that is a list no names are looked at, of which it has as many as elements', () => {
  const requests = new RequestReader(catalog, breakdownOf(dated));
  expect(() => requests.read(Object.assign([], { limt: 1 }))).toThrow('must be a JSON object');
});

test.each([
  { filters: { device: [1, 2, 3] } },
  { metrics: ['cost', 'price', 'sum'] },
  { order_by: [{}, {}, {}] },
])('only the first of many wrong elements is told: %j', (fields) => {
  const schema = requestSchema(catalog, breakdownOf(dated));
  expect(schema.safeParse({ ...october, ...fields }).error?.issues).toHaveLength(1);
});

describe.each([undated, dated])('%s refuses with the name of the field', (path) => {
  test.each(everywhere)('%j', async (fields, field, reason) => {
    const problem = { status: 400, code: 'invalid_request', field, detail: expect.stringContaining(reason) };
    expect(await refusal(path, fields)).toMatchObject(problem);
  });
});

test.each([
  ['closes', 'start_time and end_time'],
  ['explain', 'start_time, end_time, filters and row'],
])('/%s names the fields that there are when it refuses one', async (question, fields) => {
  const detail = expect.stringContaining(`is not known here: there are ${fields}`);
  expect(await refusal(`/v1/campaigns/${question}`, { row: {}, more: 1 })).toMatchObject({ detail });
});

test.each<Case>([
  [{ time_grain: 'year' }, 'time_grain', 'day, week or month'],
  [{ compare_to: dates('2026-09-01', '2026-09-30') }, 'compare_to', '31 days'],
  [{ ...dates('2149-06-01', '2149-06-07'), compare_to: 'previous_year' }, 'compare_to', '2149-06-06'],
])('a breakdown by date refuses %j', async (fields, field, reason) => {
  expect(await refusal(dated, fields)).toMatchObject({
    status: 400,
    field,
    detail: expect.stringContaining(reason),
  });
});

test('only a breakdown by date has time_grain', async () => {
  const problem = { status: 400, field: 'time_grain', detail: expect.stringContaining('by date') };
  expect(await refusal(undated, { time_grain: 'week' })).toMatchObject(problem);
});

test.each([
  {
    more: 1,
    offset: 'x',
    time: 3,
    by: 4,
    dimensions: [],
    group_by: [],
    sort: 'spent',

    '': 1,
    '.': 1,
  },
  { filters: {}, order_by: [], totals: false },
  {
    filters: null,
    metrics: null,
    order_by: null,
    limit: null,
    totals: null,
    time_grain: null,
    compare_to: null,
  },
  { filters: { device: null }, order_by: [{ field: 'spent', direction: null }] },
  { filters: { campaign: ["it's \\ \n\t\0 '], 'x", '\ud800', '{x:String}', '$' + '{data}'] } },
  { compare_to: dates('0001-01-01', '9999-12-31') },
])('%j is accepted', async (fields) => {
  const response = await service.post(undated, 'account', { ...october, ...fields });
  expect([response.status, JSON.parse(await response.text()).result.rows]).toEqual([200, []]);
});

test('a filter may have ten thousand values', async () => {
  const campaign_id = Array.from({ length: 10_000 }, () => randomUUID());
  const response = await service.post(dated, 'account', { ...october, filters: { campaign_id } });
  expect([response.status, JSON.parse(await response.text()).result.rows]).toEqual([200, []]);
});
