import { describe, expect, test } from 'vitest';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);

const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const csv = `/v1/export/campaigns/device_date.csv?${new URLSearchParams(march)}`;

describe('a token as the password', () => {
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

  test('opens exports, and no endpoint of the contract', async () => {
    const headers = basic(`anybody:${await service.token('both')}`);
    expect((await fetch(`${service.url}${csv}`, { headers })).status).toBe(200);
    expect((await service.post('/v1/campaigns', 'both', march, headers)).status).toBe(401);
  });

  test.each([
    ['a wrong one', { authorization: 'Basic YTpi' }],
    ['none', { authorization: '' }],
    ['no base64', { authorization: 'Basic ä%' }],
    ['a token that is none', { authorization: 'Bearer adt_x' }],
  ])('%s is asked for again, in both ways', async (_, { authorization }) => {
    const headers: Record<string, string> = /ä/.test(authorization)
      ? { authorization: 'Basic %' }
      : { authorization };
    const response = await fetch(`${service.url}${csv}`, { headers });
    expect(response.status).toBe(401);
    const asked = response.headers.get('www-authenticate');
    expect(asked).toMatch(/^Bearer realm="adtally".*, Basic realm="adtally", charset="UTF-8"$/);
    expect(JSON.parse(await response.text()).code).toBe('unauthorized');
  });
});
