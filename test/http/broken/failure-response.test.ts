import { Hono } from 'hono';
import pino from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpEnv } from '../../../src/http/env.ts';
import { type Listening, listen } from '../../../src/http/server/listen.ts';

/** An app whose handler of errors fails too: no route of the service answers such a request. */
const app = new Hono<HttpEnv>();
app.get('/fails', () => {
  throw new Error('/var/lib/secret is not readable');
});
app.onError((error) => {
  throw error;
});

const lines: string[] = [];
let listening: Listening | undefined;
beforeAll(async () => {
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  listening = await listen(
    app,
    { host: '127.0.0.1', port: 0, maxConnections: 10, sendTimeoutSeconds: 60 },
    log,
  );
});
afterAll(() => listening?.connections.stop(0));

test('a request that fails outside every route is 500 with problem details, and its reason is for the log alone', async () => {
  const response = await fetch(`${listening?.url}/fails`);
  const text = await response.text();
  expect(response.status, text).toBe(500);
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(text).not.toContain('secret');
  const { code, request_id: id } = JSON.parse(text);
  expect([code, id]).toEqual(['internal_error', response.headers.get('x-request-id')]);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      level: 50,
      request: id,
      msg: 'request failed',
      err: expect.objectContaining({ message: '/var/lib/secret is not readable' }),
    }),
  ]);
});
