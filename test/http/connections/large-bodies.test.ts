import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestBody } from '../../../src/http/report/request-body.ts';
import type { HttpEnv } from '../../../src/http/request/env.ts';
import { Problem } from '../../../src/http/request/problems.ts';

const maxBytes = 512 * 1024;
let waiting: (() => void)[] = [];
const app = new Hono<HttpEnv>()
  .use(async (c, next) => {
    c.set('account', c.req.header('account') ?? '');
    await next();
  })
  .post('/', requestBody(maxBytes), async (c) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return c.text('answered');
  })
  .onError((error, c) => c.text(error instanceof Problem ? error.code : String(error)));
const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false });
let url = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

/** Waits until so many have arrived, however long a busy machine takes for that. */
const arrived = (of: () => number, all: number) => expect.poll(of, { timeout: 30_000 }).toBe(all);

const send = async (account: string, bytes: number) => {
  const response = await fetch(url, { method: 'POST', headers: { account }, body: 'x'.repeat(bytes) });
  return response.text();
};

test('large bodies are held until they are answered, half of them of one account; small ones find room', async () => {
  const refused: string[] = [];
  const asked = Array.from({ length: 20 }, async () => {
    const said = await send('many', maxBytes);
    if (said !== 'answered') refused.push(said);
  });
  await arrived(() => waiting.length + refused.length, 20);
  expect([waiting.length, refused]).toEqual([16, Array(4).fill('too_many_reports')]);
  const others = [send('many', 16 * 1024), send('other', maxBytes)];
  await arrived(() => waiting.length, 18);
  for (const answer of waiting) answer();
  expect(await Promise.all(others)).toEqual(['answered', 'answered']);
  await Promise.all(asked);

  waiting = [];
  const after = send('many', maxBytes);
  await arrived(() => waiting.length, 1);
  waiting[0]?.();
  expect(await after).toBe('answered');
});
