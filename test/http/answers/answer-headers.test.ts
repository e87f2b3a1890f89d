import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { inTurn } from '../../../ingest/history/in-turn.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { unloadOf } from '../../../ingest/ledger/load-records.ts';
import { lastLoadOf } from '../../../src/http/report/last-load.ts';
import type { HttpEnv } from '../../../src/http/request/env.ts';
import { listen } from '../../../src/http/server/listen.ts';
import { openLog } from '../../../src/observe/log.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { ask } from '../../support/strangers.ts';

const db = useStore();
const service = useService(db, { ADMIN_PORT: '0' });
const body = '{"start_time":"2026-03-01","end_time":"2026-03-31"}';
const json = { 'content-type': 'application/json' };

describe('no answer is kept on its way, or taken for something else than it says', () => {
  const asked: Record<string, () => Promise<{ headers: NodeJS.Dict<string | string[]> }>> = {
    'a report': () => report(),
    'CSV, packed': () => report({ accept: 'text/csv', 'accept-encoding': 'gzip' }),
    'no body': () => report({}, '{'),
    'no token': () => ask(service.url, { path: '/v1/campaigns', headers: json, body }),
    'no path': () => ask(service.url, { path: '/nowhere' }),
    'no method': () => ask(service.url, { path: '/v1/campaigns', method: 'PUT' }),
    'no message': () => ask(service.url, { headers: { host: 'a b' } }),
    health: () => ask(service.url, { path: '/healthz', method: 'GET' }),
    'readiness on its own port': () => ask(service.adminUrl, { path: '/readyz', method: 'GET' }),
    'no path on its own port': () => ask(service.adminUrl, { path: '/nowhere', method: 'GET' }),
  };
  const report = async (headers: Record<string, string> = {}, sent = body) => {
    const authorization = `Bearer ${await service.token('a')}`;
    return ask(service.url, {
      path: '/v1/campaigns',
      headers: { ...json, authorization, ...headers },
      body: sent,
    });
  };
  test.each(Object.entries(asked))('%s', async (_, asking) => {
    expect((await asking()).headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  test.each(['/docs', '/openapi.json'])('%s may be kept, but is asked for again', async (path) => {
    const { headers } = await ask(service.url, { path, method: 'GET' });
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' });
  });
});

test.each([
  [undefined, 'Bearer realm="adtally"'],
  ['Bearer two words', 'Bearer realm="adtally", error="invalid_request"'],
  ['Bearer adt_nonsense', 'Bearer realm="adtally", error="invalid_token"'],
])('a caller with authorization: %s is challenged by name', async (authorization, challenge) => {
  const { status, headers } = await ask(service.url, {
    path: '/v1/campaigns',
    headers: { ...json, ...(authorization && { authorization }) },
    body,
  });
  expect([status, headers['www-authenticate']]).toEqual([401, challenge]);
});

test('a body that is packed is refused as such', async () => {
  const headers = {
    ...json,
    authorization: `Bearer ${await service.token('a')}`,
    'content-encoding': 'gzip',
  };
  const answer = await ask(service.url, { path: '/v1/campaigns', headers, body });
  expect([answer.status, answer.headers['accept-encoding']]).toEqual([415, 'identity']);
});

test.each<[string, unknown]>([
  ['an error', new Error('of our own')],
  ['what is no error', 'of our own'],
])('%s that escapes every route is our fault, and logged', async (_, thrown) => {
  const lines: string[] = [];
  const app = new Hono<HttpEnv>().get('/', () => {
    throw thrown;
  });
  app.onError((error) => {
    throw error;
  });
  const log = openLog('info', { write: (line) => void lines.push(line) });
  const { url, connections } = await listen(
    app,
    { host: '127.0.0.1', port: 0, maxConnections: 10, sendTimeoutSeconds: 60 },
    log,
  );
  try {
    const answer = await ask(url, { method: 'GET' });
    expect(answer.status).toBe(500);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
    });
    const { code, request_id } = JSON.parse(answer.body);
    expect([code, request_id]).toEqual(['internal_error', answer.headers['x-request-id']]);
    expect(lines).toHaveLength(1);
    const logged = { level: 50, request: request_id, msg: 'request failed' };
    expect(JSON.parse(lines[0] ?? '')).toMatchObject(logged);
    expect(lines[0]).toContain('of our own');
    expect(answer.body).not.toContain('of our own');
  } finally {
    await connections.stop(0);
  }
});

test('an unload changes when the data were changed last; a backup, which only takes its turn, and a load that failed without a row do not', async () => {
  await inTurn(db.store, 'backup to a.tar', new Date(), {}, async () => undefined);
  const failed = await Load.begin(db.store, { kind: 'events', file: 'no such column.csv' }, new Date());
  await failed.fail(new Error('no such column'));
  const lastLoad = lastLoadOf(db.store, () => undefined);
  await lastLoad.refresh();
  expect(lastLoad.value).toBeUndefined();
  await inTurn(db.store, unloadOf('20260301000000-a'), new Date(), {}, async () => undefined);
  await lastLoad.refresh();
  expect(lastLoad.value).toBeDefined();
});
