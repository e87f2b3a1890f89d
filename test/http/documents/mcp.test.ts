import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { exportFormats } from '../../../src/http/export/paths.ts';
import { event, load } from '../../support/events.ts';
import { type TestService, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const few = useService(db, { RATE_LIMIT_REQUESTS: '6' });

const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const many = 1_003;

beforeAll(async () => {
  await load(db.store, [
    event({ device: 'mobile', spend: '123456789012.345678' }),
    event({ device: 'tv', event_time: '2026-03-02T00:00:00Z' }),
    ...Array.from({ length: many }, (_, n) =>
      event({ advertiser_id: 'large', campaign_id: `campaign ${n}`, device: n < 3 ? 'tv' : 'mobile' }),
    ),
  ]);
});

test('several messages in one body are refused, and nobody waits for a call that one of them cancels', async () => {
  const batch = [
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
  ];
  const accept = 'application/json, text/event-stream';
  const response = await service.post('/mcp', 'advertiser', JSON.stringify(batch), { accept });
  expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_request' }]);
});

async function connected(token: string, from: TestService = service) {
  const client = new Client({ name: 'test', version: '0' });
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${from.url}/mcp`), { requestInit: { headers } }),
  );
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: args });
    const [first] = content;
    return { isError, text: first?.type === 'text' ? first.text : '' };
  };
  return { client, call };
}

const toolsOf = async (account: string) => connected(await service.token(account));

test('a model finds out what there is, and can change nothing', async () => {
  const { client, call } = await toolsOf('advertiser');
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['list_reports', 'report', 'changed_days']);
  expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true);
  const reports = JSON.parse((await call('list_reports')).text);
  expect(reports).toHaveLength(16);
  expect(reports[3]).toMatchObject({ name: 'campaigns/device_date', row_is: 'one campaign, device, day' });
  await client.close();
});

test('what it is told is what the endpoint says, digit for digit', async () => {
  const { call } = await toolsOf('advertiser');
  const asked = {
    ...march,
    order_by: [{ field: 'impressions' }],
    filters: { device: ['mobile'] },
    totals: true,
  };
  const told = await call('report', { report: 'campaigns/device_date', ...asked });
  const posted = await service.post('/v1/campaigns/breakdowns/device_date', 'advertiser', {
    ...asked,
    limit: 1_000,
  });
  const withoutTime = (text: string) => text.replace(/"last_update_time":"[^"]+"/, '');
  expect(told.isError).toBe(false);
  expect(withoutTime(told.text)).toBe(withoutTime(await posted.text()));
  expect(told.text).toContain('123456789012.345678');
});

test('a report may take longer than the 300 s after which fetch gives up', async () => {
  const { call } = await toolsOf('advertiser');
  const fetched = vi.spyOn(globalThis, 'fetch');
  try {
    expect((await call('report', { report: 'campaigns', ...march })).isError).toBe(false);
    expect(fetched.mock.calls.map(([url]) => String(url))).toEqual([`${service.url}/mcp`]);
  } finally {
    fetched.mockRestore();
  }
});

test('null means not given for every field, as in the body of the endpoint', async () => {
  const { call } = await toolsOf('advertiser');
  const fields = ['filters', 'metrics', 'order_by', 'limit', 'totals', 'ids', 'time_grain', 'compare_to'];
  const nothing = Object.fromEntries(fields.map((field) => [field, null]));
  const rowsOf = ({ text }: { text: string }) => JSON.parse(text).result.rows;
  const told = await call('report', { report: 'campaigns', ...march, ...nothing });
  expect(told.isError, told.text).toBe(false);
  expect(rowsOf(told)).toEqual(rowsOf(await call('report', { report: 'campaigns', ...march })));
});

describe('a report of more rows than a model reads', () => {
  test('is refused with their number and where they are', async () => {
    const { call } = await toolsOf('large');
    for (const more of [{}, { limit: 5_000 }]) {
      const { isError, text } = await call('report', { report: 'campaigns', ...march, ...more });
      expect(isError).toBe(true);
      expect(text).toContain(`${many} rows`);
      expect(exportFormats.filter((format) => !text.includes(`.${format}`))).toEqual([]);
      const [address = ''] = /\/v1\/export\/\S+/.exec(text) ?? [];
      const headers = { authorization: `Bearer ${await service.token('large')}` };
      const all = await (await fetch(`${service.url}${address}`, { headers })).text();
      expect(all.trim().split('\n')).toHaveLength(many + 1);
    }
  });

  test('is refused without an address where that would be too long', async () => {
    const { call } = await toolsOf('large');
    const filters = { device: ['mobile', 'tv', 'x'.repeat(8_000)] };
    const { text } = await call('report', { report: 'campaigns', ...march, filters });
    expect(text).toContain(`${many} rows`);
    expect(text).not.toContain('/v1/export/');
  });

  test('is given in part when the part is asked for', async () => {
    const { call } = await toolsOf('large');
    const rowsOf = async (more: object) =>
      JSON.parse((await call('report', { report: 'campaigns', ...march, ...more })).text).result;
    expect((await rowsOf({ limit: 2 })).rows).toHaveLength(2);
    expect((await rowsOf({ filters: { device: ['tv'] } })).rows).toHaveLength(3);
    expect((await rowsOf({ limit: 2 })).row_count).toBe(many);
  });
});

test('changed days are told', async () => {
  const { call } = await toolsOf('advertiser');
  const every = { family: 'campaigns', changed_since: '1970-01-01T00:00:00Z' };
  const { days } = JSON.parse((await call('changed_days', every)).text).result;
  expect(days.map(({ day }: { day: string }) => day)).toEqual(['2026-03-01', '2026-03-02']);
  expect(await call('changed_days', { ...every, changed_since: 'yesterday' })).toMatchObject({
    isError: true,
  });
});

test('what is wrong with a request is said as the endpoint says it', async () => {
  const { call } = await toolsOf('advertiser');
  const inverted = { report: 'campaigns', start_time: '2026-03-02', end_time: '2026-03-01' };
  const { isError, text } = await call('report', inverted);
  expect([isError, JSON.parse(text)]).toMatchObject([true, { code: 'invalid_request', field: 'end_time' }]);
  const mistyped = await call('report', { ...march, report: 'campaigns', filter: { device: ['tv'] } });
  expect([mistyped.isError, mistyped.text]).toEqual([true, expect.stringContaining('filter')]);
  expect((await call('report', { ...march, report: 'campaigns', filters: { site: ['x'] } })).text).toContain(
    'filters.site',
  );
  const wrong = await call('report', { ...march, report: 'campaigns', metrics: [1, 2] });
  expect([wrong.isError, JSON.parse(wrong.text).field]).toEqual([true, 'metrics.0']);
});

test('token, family and limit are those of any request', async () => {
  await expect(connected('adt_none')).rejects.toThrow();
  const token = await createToken(db.store, { account: 'advertiser', label: '', family: 'campaigns' });
  const { call } = await connected(token);
  expect((await call('report', { report: 'campaigns', ...march })).isError).toBe(false);
  const other = await call('report', { report: 'ad_units', ...march });
  expect([other.isError, JSON.parse(other.text).code]).toEqual([true, 'unauthorized']);
  const limited = await connected(await few.token('advertiser'), few);
  const ask = async () => {
    for (let n = 0; n < 6; n++) {
      const { isError, text } = await limited.call('report', { report: 'campaigns', ...march });
      if (isError) return text;
    }
    return '';
  };
  expect(await ask().catch(String)).toMatch(/429|rate_limited/);
});

test('only POST reaches it, with a small message', async () => {
  const headers = { authorization: `Bearer ${await service.token('advertiser')}` };
  expect((await fetch(`${service.url}/mcp`, { headers })).status).toBe(405);
  expect((await service.post('/mcp', 'advertiser', 'x'.repeat(600_000))).status).toBe(413);
  const accept = 'application/json, text/event-stream';
  for (const message of [
    '',
    '{',
    '[]',
    '1',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}',
  ]) {
    const response = await service.post('/mcp', 'advertiser', message, { accept });
    expect(response.status).toBeLessThan(500);
    await response.text();
  }
});
