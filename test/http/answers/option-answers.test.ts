import { beforeAll, expect, test } from 'vitest';
import { event, load } from '../../support/events.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const path = '/v1/campaigns/breakdowns/date';

beforeAll(() =>
  load(db.store, [
    event({ campaign_id: 'a', device: 'tv', spend: '3' }),
    event({ campaign_id: 'b', device: 'mobile', spend: '2', event_time: '2026-03-02T00:00:00Z' }),
    event({ campaign_id: 'b', device: 'mobile', spend: '1', event_time: '2026-02-10T00:00:00Z' }),
  ]),
);

async function ask(options: object, accept = 'application/json'): Promise<{ text: string; cache: string }> {
  const response = await service.post(path, 'advertiser', { ...march, ...options }, { accept });
  const text = (await response.text()).replace(/"last_update_time":"[^"]+"/, '');
  const said = ['totals', 'row-count', 'compare-to'].map((name) => response.headers.get(`adtally-${name}`));
  const cache = response.headers.get('cache-status')?.replace('adtally; ', '') ?? '';
  return { text: `${text} ${said.join(' ')}`, cache };
}

const others: readonly object[] = [
  {},
  { filters: { campaign: ['a'] } },
  { filters: { campaign: ['b'] } },
  { filters: { device: ['tv'] }, metrics: ['spent'] },
  { metrics: ['spent', 'cpm'] },
  { metrics: ['cpm', 'spent'] },
  { order_by: [{ field: 'spent' }], totals: true },
  { limit: 1 },
  { limit: 1, totals: true },
  { limit: 1, order_by: [{ field: 'campaign', direction: 'desc' }] },
  { time_grain: 'week' },
  { time_grain: 'month' },
  { compare_to: 'previous_period' },
  { compare_to: 'previous_year' },
];

test.each(['application/json', 'text/csv'])(
  'what is kept of a report answers no request with other optional fields: %s',
  async (accept) => {
    const first = [];
    for (const options of others) first.push(await ask(options, accept));
    expect(new Set(first.map(({ text }) => text)).size).toBe(others.length);
    for (const [n, options] of others.entries()) {
      const again = await ask(options, accept);
      expect(again, JSON.stringify(options)).toEqual({ text: first[n]?.text, cache: 'hit' });
    }
  },
);

test('requests that ask for the same in other words share what is kept', async () => {
  await ask({ filters: { device: ['tv', 'mobile'] } });
  const same = await ask({ filters: { device: ['mobile', 'tv', 'tv'] }, order_by: [], totals: false });
  expect(same.cache).toBe('hit');
});

test('an answer is computed anew when the days that it compares with have changed', async () => {
  const before = await ask({ compare_to: 'previous_period', metrics: ['spent'] });
  expect(before.text).toContain('"spent_compared":1,');
  await load(db.store, [event({ campaign_id: 'b', spend: '4', event_time: '2026-02-10T00:00:00Z' })]);
  const after = await ask({ compare_to: 'previous_period', metrics: ['spent'] });
  expect(after.text).toContain('"spent_compared":5,');
  expect(after.cache).toBe('fwd=stale');
  expect((await ask({})).cache).toBe('hit');
});

test('an answer is computed anew when the rollup that its filter needs has changed', async () => {
  const asked = { filters: { device: ['tv'] }, totals: true };
  expect((await ask(asked)).text).toContain('"totals":{"cpa":0,"cpc":0,"cpm":3000,');
  await load(db.store, [event({ campaign_id: 'c', device: 'tv', spend: '1' })]);
  expect((await ask(asked)).text).toContain('"totals":{"cpa":0,"cpc":0,"cpm":2000,');
});
