import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { useService } from '../../support/service.ts';
import { reachedBy, useStatementsBetween } from '../../support/statements-between.ts';
import { useStore } from '../../support/store.ts';

/** The traces of reports. */
const seen: unknown[] = [];
const db = useStore();
const way = useStatementsBetween(
  () => db.address.url,
  ({ headers: { traceparent }, settings }) => {
    if (settings.has('query_id') && `${settings}`.includes('format_template')) seen.push(traceparent);
  },
);

describe.each([
  ['of a trusted proxy goes on to the database, and a malformed one does not', '127.0.0.1', true],
  ['of anybody else does not', '10.0.0.0/8', false],
  ['of anybody does not where no proxy is trusted', '', false],
])('the trace', (what, TRUSTED_PROXIES, handedOn) => {
  const service = useService(reachedBy(way, db), { TRUSTED_PROXIES });

  test(what, async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    seen.length = 0;
    for (const [end, traceparent] of [
      ['30', trace],
      ['31', 'malformed'],
    ] as const) {
      const body = { start_time: '2026-03-01', end_time: `2026-03-${end}` };
      const headers = { traceparent, 'x-forwarded-for': '127.0.0.1' };
      expect((await service.post('/v1/campaigns', 'a', body, headers)).status).toBe(200);
    }
    expect(seen).toEqual([handedOn ? trace : undefined, undefined]);
  });
});

test.each([
  ['embedded.xml', /<opentelemetry_span_log>/, false],
  ['server/config.xml', /<opentelemetry_span_log remove="remove"\/>/, true],
])('a ClickHouse as %s configures it keeps no trace', (file, pattern, expected) => {
  const path = new URL(`../../../clickhouse/config/${file}`, import.meta.url);
  expect(pattern.test(readFileSync(path, 'utf8'))).toBe(expected);
});
