import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { event, load, ndjson } from '../support/events.ts';
import { environmentOf, listening, useCommands } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();

const exported = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(z.object({ key: z.string(), value: z.unknown() })) }),
      scopeSpans: z.array(z.object({ spans: z.array(z.looseObject({ name: z.string() })) })),
    }),
  ),
});

/** A collector: takes spans as OTLP over HTTP, in JSON. */
const spans: Record<string, unknown>[] = [];
const resources: unknown[] = [];
const collector = createServer(async (asked, answer) => {
  for (const { resource, scopeSpans } of exported.parse(await json(asked)).resourceSpans) {
    resources.push(...resource.attributes);
    spans.push(...scopeSpans.flatMap((scope) => scope.spans));
  }
  answer.writeHead(200, { 'content-type': 'application/json' }).end('{}');
});
let env: Record<string, string> = {};
beforeAll(async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const address = collector.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  env = {
    ...environmentOf(db.address),
    PORT: '0',
    TRUSTED_PROXIES: '127.0.0.1',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_SERVICE_NAME: 'reports',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
});
afterAll(() => collector.close());

const named = (name: string) => spans.find((span) => span.name === name);

test('a request is a span below that of the caller, with the id of its statement', async () => {
  await load(db.store, [event({ advertiser_id: 'a' })]);
  const token = (await commands.run(['token', 'create', 'a'], env)).stdout.trim();
  const service = commands.start(['serve'], env);
  const url = await listening(service);
  const answer = await fetch(`${url}/v1/campaigns`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'x-forwarded-for': '203.0.113.7',
    },
    body: '{"start_time":"2026-03-01","end_time":"2026-03-31"}',
  });
  expect(answer.status).toBe(200);
  await answer.text();
  await expect
    .poll(() => named('POST /v1/campaigns'), { timeout: 20_000 })
    .toMatchObject({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentSpanId: 'b7ad6b7169203331',
      attributes: expect.arrayContaining([
        { key: 'http.response.status_code', value: { intValue: 200 } },
        { key: 'adtally.account', value: { stringValue: 'a' } },
        { key: 'adtally.query_id', value: { stringValue: expect.stringMatching(/./) } },
      ]),
    });
  expect(JSON.stringify(spans)).not.toContain(token.slice(4, 20));
  expect(resources).toContainEqual({ key: 'service.name', value: { stringValue: 'reports' } });
  expect((await service.kill('SIGTERM')).code).toBe(0);
});

test('a load is a span with its id, and a collector that is gone fails nothing', async () => {
  const lines = ndjson([event(), event({ campaign_id: '' })]);
  const args = ['ingest', 'events', '--format', 'ndjson', '--json', '-'];
  const begun = Date.now();
  const { code, stdout } = await commands.run(args, { ...env, ANSWER_TRUST_MS: '3000' }, lines);
  const over = Date.now();
  expect(code).toBe(4);
  const span = named('ingest events');
  expect(span).toMatchObject({
    attributes: expect.arrayContaining([
      { key: 'adtally.rows', value: { intValue: 1 } },
      { key: 'adtally.rejected_rows', value: { intValue: 1 } },
      {
        key: 'adtally.loads',
        value: { arrayValue: { values: [{ stringValue: JSON.parse(stdout).loads[0] }] } },
      },
    ]),
  });
  // The wait for services of reports is none of the load, however long that takes.
  expect(over - begun - JSON.parse(stdout).seconds * 1e3).toBeGreaterThan(3_000);
  expect(over - Number(span?.endTimeUnixNano) / 1e6).toBeGreaterThan(3_000);
  const gone = {
    ...env,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
  };
  expect((await commands.run(args, gone, ndjson([event()]))).code).toBe(0);
});
