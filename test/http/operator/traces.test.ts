import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { startService } from '../../../src/http/service.ts';
import { openLog } from '../../../src/observe/log.ts';
import { useStore } from '../../support/store.ts';
import { ask } from '../../support/strangers.ts';

const db = useStore();
const seen: (string | undefined)[] = [];

/** In front of the real ClickHouse: notes the trace of reports. */
const between = createServer((asked, answer) => {
  if (asked.url?.includes('query_id=') && asked.url.includes('format_template'))
    seen.push(asked.headers.traceparent?.toString());
  const { method, headers, url } = asked;
  const on = request(`${db.address.url}${url}`, { method, headers }, (got) => {
    answer.writeHead(got.statusCode ?? 500, got.headers);
    got.pipe(answer);
  });
  asked.pipe(on.on('error', () => answer.destroy()));
});
let url: string;
beforeAll(async () => {
  await once(between.listen(0, '127.0.0.1'), 'listening');
  const address = between.address();
  url = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`;
});
afterAll(() => between.close());

test.each([
  ['of a trusted proxy goes on to the database', '127.0.0.1', true],
  ['of anybody else does not', '10.0.0.0/8', false],
  ['of anybody does not where no proxy is trusted', '', false],
])('the trace %s', async (_, trusted, handedOn) => {
  const config = loadConfig({ PORT: '0', TRUSTED_PROXIES: trusted });
  const reporter = { ...db.address, url };
  const opened = { address: reporter, reporter, lost: new Promise<void>(() => {}), close: async () => {} };
  const service = await startService(config, opened, openLog('silent', process.stderr));
  try {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const authorization = `Bearer ${await createToken(db.store, { account: 'a', label: '' })}`;
    seen.length = 0;
    const { status } = await ask(service.url, {
      path: '/v1/campaigns',
      headers: {
        authorization,
        'content-type': 'application/json',
        traceparent,
        'x-forwarded-for': '127.0.0.1',
      },
      body: '{"start_time":"2026-03-01","end_time":"2026-03-31"}',
    });
    expect(status).toBe(200);
    expect(seen).toEqual([handedOn ? traceparent : undefined]);
  } finally {
    await service.stop();
  }
});

test.each([
  ['embedded.xml', /<opentelemetry_span_log>/, false],
  ['server/config.xml', /<opentelemetry_span_log remove="remove"\/>/, true],
])('a ClickHouse as %s configures it keeps no trace', (file, pattern, expected) => {
  const path = new URL(`../../../clickhouse/config/${file}`, import.meta.url);
  expect(pattern.test(readFileSync(path, 'utf8'))).toBe(expected);
});
