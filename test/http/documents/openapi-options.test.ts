import { beforeAll, expect, test } from 'vitest';
import type { OpenApiDocument } from '../../../src/http/openapi/model.ts';
import { event, load } from '../../support/events.ts';
import { faults, readDocument } from '../../support/openapi-faults.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const path = '/v1/campaigns';
const body = { start_time: '2026-03-01', end_time: '2026-03-31' };
const ofOptions = ['Adtally-Row-Count', 'Adtally-Totals', 'Adtally-Compare-To'];

let document: OpenApiDocument;
beforeAll(async () => {
  await load(db.store, [event({ spend: '12.345678' }), event({ event_type: 'referral' })]);
  document = await readDocument(service.url);
});

const asked = {
  ...body,
  limit: 1,
  totals: true,
  compare_to: 'previous_period',
  metrics: ['cpc', 'spent'],
};
test('answers with optional fields are what the document says', async () => {
  const place = ['paths', path, 'post', 'responses', '200', 'content', 'application/json', 'schema'];
  const answer = JSON.parse(await (await service.post(path, 'advertiser', asked)).text());
  expect(Object.keys(answer.result)).toEqual(
    expect.arrayContaining(['totals', 'row_count', 'compare_to', 'rows']),
  );
  expect(await faults(answer, ...place)).toEqual([]);
  for (const wrong of [{ row_count: '1' }, { totals: { spent: '1' } }, { more: 1 }, { rows: [{}] }]) {
    expect(await faults({ result: { ...answer.result, ...wrong } }, ...place)).not.toEqual([]);
  }
  const csv = await service.post(path, 'advertiser', asked, { accept: 'text/csv' });
  expect(ofOptions.filter((name) => !csv.headers.has(name))).toEqual([]);
  const documented = document.paths[path]?.post?.responses[200];
  const headers = documented && 'headers' in documented ? documented.headers : {};
  expect(Object.keys(headers ?? {})).toEqual(expect.arrayContaining(ofOptions));
  await csv.text();
});

test('bodies with optional fields are accepted and refused as the document says', async () => {
  const options = [
    {
      limit: 1,
      totals: false,
      filters: {},
      order_by: [],
      compare_to: 'previous_year',
      time_grain: undefined,
    },
    { filters: { device: ['x'], campaign_id: [''] }, metrics: ['cpc'], order_by: [{ field: 'cpc' }] },
    { compare_to: { start_time: '2025-01-01', end_time: '2025-12-31' } },
    ...[
      { limit: 0 },
      { limit: '1' },
      { limit: 1.5 },
      { totals: 1 },
      { filters: { site: ['x'] } },
      { metrics: [] },
    ],
    ...[
      { filters: { device: [] } },
      { filters: { device: 'x' } },
      { order_by: ['cpc'] },
      { metrics: ['cost'] },
    ],
    ...[{ compare_to: 'yesterday' }, { compare_to: { start_time: '2025-01-01' } }, { filters: null }],
  ].map((more) => ({ ...body, ...more }));
  for (const request of options) {
    const accepted = (await service.post(path, 'a', request)).status === 200;
    const fits = await faults(request, 'components', 'schemas', 'CampaignsRequest');
    expect({ request, fits: fits.length === 0 }).toEqual({ request, fits: accepted });
  }
});
