import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const service = useService(useStore(), { REDIS_URL: inject('redisUrl'), RATE_LIMIT_REQUESTS: '2' });
const redis = new Redis(inject('redisUrl'));
const account = `counted-${randomBytes(6).toString('hex')}`;
const key = `adtally:requests:${account}`;
beforeAll(() => redis.ping());
afterAll(() => redis.disconnect());

async function ask(): Promise<[number, string | null, string | null]> {
  const { status, headers } = await service.post('/v1/campaigns', account, '{');
  return [status, headers.get('ratelimit'), headers.get('retry-after')];
}

test('a count beyond all limits in Redis is a limit, and no fault of the message', async () => {
  await redis.set(key, '9007199254740995', 'EX', 600);
  const [status, rateLimit, retryAfter] = await ask();
  expect([status, retryAfter]).toEqual([429, expect.stringMatching(/^\d+$/)]);
  expect(rateLimit).toMatch(/^"account";r=0;t=\d+$/);
});

test('a count below zero is not believed: this process counts by itself', async () => {
  await redis.set(key, '-1000', 'EX', 600);
  const statuses = [(await ask())[0], (await ask())[0], (await ask())[0]];
  expect(statuses).toEqual([400, 400, 429]);
});
