import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request, STATUS_CODES } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, inject, test } from 'vitest';
import { newToken } from '../../../src/accounts/tokens.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);

const endpoint = '/v1/campaigns/breakdowns/date';
const body = { start_time: '2026-03-01', end_time: '2026-03-31' };
const tooLarge = JSON.stringify({ ...body, padding: 'x'.repeat(600_000) });

/** What must never reach a caller: statements, tables, the product's files, the engine's name, tokens. */
const inside = /select|insert|from |campaigns_|test_[0-9a-f]|clickhouse|code: |\.ts|\.js|node_modules|adt_/i;

const statuses = {
  not_found: 404,
  method_not_allowed: 405,
  unauthorized: 401,
  rate_limited: 429,
  unsupported_media_type: 415,
  body_too_large: 413,
  invalid_request: 400,
  internal_error: 500,
};

/** Reads a problem and checks everything that all of them have in common. */
async function expectProblem(response: Response, code: keyof typeof statuses, field?: string) {
  const raw = await response.text();
  const status = statuses[code];
  expect({ status: response.status, raw }).toMatchObject({ status });
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(JSON.parse(raw)).toEqual({
    type: expect.stringMatching(/^(about:blank|https?:.*|\/.*)$/),
    title: STATUS_CODES[status],
    status,
    code,
    detail: expect.stringMatching(/\w/),
    ...(field && { field }),
    request_id: response.headers.get('x-request-id'),
  });
  expect(response.headers.get('x-request-id')).toMatch(/^[\w-]{8,}$/);
  expect(raw).not.toMatch(inside);
}

test.each(['/v1', '/v2/campaigns', '/v1/campaigns/breakdowns/site', `${endpoint}/`, '/v1/%2e%2e/x'])(
  'a path that is no endpoint is 404, whatever else is wrong: %s',
  async (path) => {
    await expectProblem(await fetch(`${service.url}${path}`, { method: 'POST', body: '{' }), 'not_found');
    await expectProblem(await fetch(`${service.url}${path}`), 'not_found');
  },
);

test.each(['GET', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'])('%s is 405 and told to POST', async (method) => {
  const response = await fetch(`${service.url}${endpoint}`, { method });
  expect(response.headers.get('allow')).toBe('POST');
  if (method === 'HEAD') expect(response.status).toBe(405);
  else await expectProblem(response, 'method_not_allowed');
});

describe('a token that opens nothing is 401 before the body is looked at', () => {
  const tokens: Record<string, () => Promise<string | undefined> | string | undefined> = {
    missing: () => undefined,
    'without a scheme': () => service.token('a'),
    'of another scheme': async () => `Basic ${await service.token('a')}`,
    'without a token': () => 'Bearer ',
    'two tokens': async () => `Bearer ${await service.token('a')} ${await service.token('a')}`,
    'no token of ours': () => 'Bearer hello',
    unknown: () => `Bearer ${newToken()}`,
    mistyped: async () => {
      const token = await service.token('a');
      return `Bearer ${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
    },
  };
  test.each(Object.entries(tokens))('%s', async (_, authorization) => {
    const value = await authorization();
    for (const wrong of ['{', tooLarge]) {
      const response = await fetch(`${service.url}${endpoint}`, {
        method: 'POST',
        headers: { 'content-type': 'text/plain', ...(value !== undefined && { authorization: value }) },
        body: wrong,
      });
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer\b/);
      expect(response.headers.has('ratelimit')).toBe(false);
      await expectProblem(response, 'unauthorized');
    }
  });

  test('the name of the scheme may be written in any case', async () => {
    const authorization = `bearer ${await service.token('a')}`;
    expect((await service.post(endpoint, 'a', body, { authorization })).status).toBe(200);
  });
});

test.each(['text/plain', 'application/jsonp', 'application/x-www-form-urlencoded', ''])(
  'a body that is not declared as JSON is 415 before it is looked at: %s',
  async (type) => {
    for (const content of [JSON.stringify(body), '{', tooLarge]) {
      const response = await service.post(endpoint, 'a', content, { 'content-type': type });
      await expectProblem(response, 'unsupported_media_type');
    }
  },
);

test.each(['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON;charset=UTF-8'])(
  'JSON is accepted as %s',
  async (type) => {
    expect((await service.post(endpoint, 'a', body, { 'content-type': type })).status).toBe(200);
  },
);

test('a body that is too large is 413, by its content-length and by what arrives in chunks', async () => {
  await expectProblem(await service.post(endpoint, 'a', tooLarge), 'body_too_large');
  const sent = request(`${service.url}${endpoint}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await service.token('a')}`, 'content-type': 'application/json' },
  });
  sent.write(tooLarge.slice(0, 9_000));
  sent.end(tooLarge.slice(9_000));
  const [answer] = await once(sent, 'response');
  expect(JSON.parse(await text(answer))).toMatchObject({ status: 413, code: 'body_too_large' });
});

test.each<[string, string | Blob, string | undefined]>([
  ['nothing at all', '', undefined],
  ['not JSON', '{"start_time":', undefined],
  [
    'not UTF-8',
    new Blob([Buffer.from(JSON.stringify({ ...body, filters: { campaign: ['Frühling'] } }), 'latin1')]),
    undefined,
  ],
  ['a list', '[]', undefined],
  ['null', 'null', undefined],
  ['text', '"2026-03-01"', undefined],
  ['no start', '{"end_time":"2026-03-01"}', 'start_time'],
  ['no end', '{"start_time":"2026-03-01"}', 'end_time'],
  ['null start', '{"start_time":null,"end_time":"2026-03-01"}', 'start_time'],
  ['a number', '{"start_time":"2026-03-01","end_time":20260301}', 'end_time'],
  ['a list of dates', '{"start_time":["2026-03-01"],"end_time":"2026-03-01"}', 'start_time'],
  ['no such day', '{"start_time":"2026-02-01","end_time":"2026-02-30"}', 'end_time'],
  ['no leap year', '{"start_time":"2025-02-29","end_time":"2026-02-28"}', 'start_time'],
  ['no such month', '{"start_time":"2026-13-01","end_time":"2026-12-01"}', 'start_time'],
  ['short', '{"start_time":"2026-2-3","end_time":"2026-03-01"}', 'start_time'],
  ['with a time', '{"start_time":"2026-03-01T00:00:00Z","end_time":"2026-03-01"}', 'start_time'],
  ['with a blank', '{"start_time":"2026-03-01 ","end_time":"2026-03-01"}', 'start_time'],
  ['empty text', '{"start_time":"","end_time":"2026-03-01"}', 'start_time'],
  ['inverted', '{"start_time":"2026-03-02","end_time":"2026-03-01"}', 'end_time'],
])('a bad body is 400 and names the field: %s', async (_, content, field) => {
  await expectProblem(await service.post(endpoint, 'a', content), 'invalid_request', field);
});

test('unknown fields in the body are ignored', async () => {
  expect((await service.post(endpoint, 'a', { ...body, limit: 3, x: {} })).status).toBe(200);
});

test.each([
  ['0001-01-01', '9999-12-31'],
  ['0001-01-01', '0001-01-01'],
  ['9999-12-31', '9999-12-31'],
  ['2024-02-29', '2024-02-29'],
])('a valid range without data is 200 without rows: %s to %s', async (start, end) => {
  const nothing = { rows: [], unconfirmed_revenue_dates: [] };
  for (const path of ['/v1/campaigns', endpoint, '/v1/ad_units/breakdowns/device_site_date'])
    expect(await service.report(path, 'nobody', start, end)).toMatchObject(nothing);
});

describe('the request id', () => {
  const ask = (id: string, content: unknown) => service.post(endpoint, 'a', content, { 'x-request-id': id });

  test('of the caller comes back, on success and in a problem', async () => {
    expect((await ask('caller-7', body)).headers.get('x-request-id')).toBe('caller-7');
    const problem = await ask('caller-8', {});
    expect(problem.headers.get('x-request-id')).toBe('caller-8');
    await expectProblem(problem, 'invalid_request', 'start_time');
  });

  test('is ours where the caller sends none or nonsense', async () => {
    for (const nonsense of ['', 'a b', '<script>', 'x'.repeat(1000)]) {
      expect((await ask(nonsense, body)).headers.get('x-request-id')).toMatch(/^[\w-]{8,255}$/);
    }
  });
});

describe.each([['in memory'], ['in Redis']])('requests counted %s', (where) => {
  const env = {
    RATE_LIMIT_REQUESTS: '3',
    RATE_LIMIT_WINDOW_SECONDS: '600',
    REDIS_URL: where === 'in Redis' ? inject('redisUrl') : '',
  };
  const limited = useService(db, env);
  // Redis outlives the run, where one was given.
  const account = `limited-${randomBytes(6).toString('hex')}`;

  test('are refused above the limit, and the caller is told when to come back', async () => {
    const answers: Response[] = [];
    const began = performance.now();
    const mayBeLeft = (seconds: string | undefined) => {
      expect(Number(seconds)).toBeGreaterThanOrEqual(599 - (performance.now() - began) / 1_000);
      expect(Number(seconds)).toBeLessThanOrEqual(600);
    };
    for (const content of [body, '{', body, '{'])
      answers.push(await limited.post(endpoint, account, content));
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 429]);
    expect(answers.map(({ headers }) => headers.get('ratelimit-policy'))).toEqual(
      Array(4).fill('"account";q=3;w=600'),
    );
    const left = answers.map(({ headers }) => headers.get('ratelimit')?.split(';t='));
    expect(left.map((parts) => parts?.[0])).toEqual([2, 1, 0, 0].map((n) => `"account";r=${n}`));
    for (const parts of left) mayBeLeft(parts?.[1]);
    const wrongBody = await limited.post(endpoint, account, tooLarge, { 'content-type': 'text/plain' });
    mayBeLeft(wrongBody.headers.get('retry-after') ?? '');
    await expectProblem(wrongBody, 'rate_limited');
    expect((await limited.post(endpoint, `${account}-other`, body)).status).toBe(200);
  });
});

describe('a store that refuses is 500 and tells nothing of itself', () => {
  const broken = useStore();
  const onBroken = useService(broken, { ANSWER_CACHE_MEGABYTES: '0' });

  test('while a table is gone, and when the database is gone', async () => {
    expect((await onBroken.post(endpoint, 'a', body)).status).toBe(200);
    await broken.store.command({ query: 'RENAME TABLE campaigns_date TO away' });
    await expectProblem(await onBroken.post(endpoint, 'a', body), 'internal_error');
    await broken.store.command({ query: 'RENAME TABLE away TO campaigns_date' });
    expect((await onBroken.post(endpoint, 'a', body)).status).toBe(200);

    // The test store itself is dropped later, so it has to be there again.
    await broken.store.command({ query: `DROP DATABASE ${broken.address.database} SYNC` });
    try {
      await expectProblem(await onBroken.post(endpoint, 'a', body), 'internal_error');
      const authorization = `Bearer ${newToken()}`;
      await expectProblem(await onBroken.post(endpoint, 'a', body, { authorization }), 'internal_error');
    } finally {
      await db.store.command({ query: `CREATE DATABASE ${broken.address.database}` });
    }
  });
});
