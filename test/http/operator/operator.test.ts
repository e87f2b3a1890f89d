import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openGate, useCountedStore } from '../../support/gate.ts';
import { environmentOf, listening, useCommands } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const counted = useCountedStore(db);
const service = useService(counted);
const apart = useService(counted, { ADMIN_PORT: '0' });
const commands = useCommands();

/** The status of a path that is sent as it stands. */
async function statusOf(url: string, path: string): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, agent: false }, (answer) => {
      text(answer).then(() => resolve(answer.statusCode ?? 0), reject);
    })
      .once('error', reject)
      .end();
  });
}

const statements = (): number => counted.sent('POST /?');

test('800 questions of anybody cost no statement', async () => {
  // Figures of the store are read once a minute, one after another; this is the last of them.
  const read = /^adtally_clickhouse_memory_bytes \d/m;
  for (const url of [service.url, apart.adminUrl])
    await expect
      .poll(async () => (await fetch(`${url}/metrics`)).text(), { timeout: 20_000, interval: 200 })
      .toMatch(read);
  // Prometheus sees a counter rise that was there before.
  const broken = /^adtally_answers_broken_total\{outcome="failed"\} 0$/m;
  expect(await (await fetch(`${service.url}/metrics`)).text()).toMatch(broken);
  const before = statements();
  const startedAt = performance.now();
  for (const path of ['/readyz', '/metrics', '/healthz', '/openapi.json']) {
    const asked = await Promise.all(Array.from({ length: 200 }, () => fetch(`${service.url}${path}`)));
    await Promise.all(asked.map((answer) => answer.arrayBuffer()));
    expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200]));
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  // Two services ask three times in 2 s each, by the clock, and check once a second.
  expect(statements() - before).toBeLessThan(10 + 6 * seconds);
});

test('readiness goes within seconds of ClickHouse, says nothing of it, and comes back', async () => {
  const gate = await openGate(db.address.url);
  const env = { ...environmentOf({ ...db.address, url: gate.url }), PORT: '0' };
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  const ready = async () => (await fetch(`${url}/readyz`)).status;
  const metrics = async () => (await fetch(`${url}/metrics`)).text();
  const up = async () => /^adtally_clickhouse_up (\d)$/m.exec(await metrics())?.[1];
  expect([await ready(), await up()]).toEqual([200, '1']);
  gate.close();
  await expect.poll(ready, { timeout: 6_000, interval: 100 }).toBe(503);
  const problem = await (await fetch(`${url}/readyz`)).text();
  expect(JSON.parse(problem)).toMatchObject({ code: 'not_ready', detail: 'the store cannot be reached' });
  expect(problem).not.toMatch(/127\.0\.0\.1|ECONN|adtally_|default|:\d{4}/);
  await expect.poll(up, { timeout: 2_000 }).toBe('0');
  // AdtallyRequestsFail leaves this name out.
  expect(await metrics()).toMatch(/^adtally_http_requests_total\{endpoint="\/readyz",status="503"\} /m);
  expect(await statusOf(url, '/healthz')).toBe(200);
  await gate.open();
  await expect.poll(ready, { timeout: 10_000, interval: 100 }).toBe(200);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
  gate.close();
});

test('with ADMIN_PORT what is for the operator is there and only there', async () => {
  for (const path of ['/readyz', '/metrics']) {
    expect([path, await statusOf(apart.url, path)]).toEqual([path, 404]);
    expect([path, await statusOf(apart.adminUrl, path)]).toEqual([path, 200]);
    expect((await fetch(`${apart.url}${path}`, { method: 'POST' })).status).toBe(404);
    expect((await fetch(`${apart.adminUrl}${path}`, { method: 'POST' })).status).toBe(405);
  }
  expect(await statusOf(apart.adminUrl, '/healthz')).toBe(200);
  expect((await fetch(`${apart.adminUrl}/healthz`, { method: 'POST' })).status).toBe(405);
  for (const path of ['/v1/campaigns', '/docs', '/openapi.json']) {
    expect([path, await statusOf(apart.adminUrl, path)]).toEqual([path, 404]);
  }
  const { paths } = JSON.parse(await (await fetch(`${apart.url}/openapi.json`)).text());
  expect(Object.keys(paths)).toContain('/healthz');
  expect(Object.keys(paths)).not.toContain('/metrics');
});

test.each([
  ...['/%72eadyz', '//readyz', '/./readyz', '/x/../readyz', '/%6detrics', '/x/../metrics', '/x\\..\\metrics'],
  ...['/readyz/', '/readyz%00', '/v1/../readyz', 'http://x/%72eadyz', '/readyz#x', '/READYZ', '/%2e/readyz'],
])('no other spelling of a path reaches anything: %s', async (path) => {
  expect([404, 400]).toContain(await statusOf(service.url, path));
});

test('a plain path with a query, or as an absolute address, reaches what it did', async () => {
  for (const path of ['/readyz', '/readyz?x=%72', 'http://x/readyz', '/metrics?']) {
    expect([path, await statusOf(service.url, path)]).toEqual([path, 200]);
  }
});
