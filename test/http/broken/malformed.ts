const methods = [
  'POST',
  'GET',
  'PUT',
  'HEAD',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'PROPFIND',
  'post',
  'P\0ST',
  '',
  'FOO',
  'PRI',
];
const paths = [
  '/v1/campaigns',
  '/v1/campaigns/breakdowns/date',
  '/v1/ad_units/breakdowns/device_site_date',
  '/',
  '/v1',
  '*',
  '//v1/campaigns',
  '/v1/../../etc/passwd',
  '/v1/%00',
  '/v1/%',
  '/v1/%ff%fe',
  '/v1/campaigns?x=1&x',
  '/v1/export/campaigns/device_date.csv?start_time=2025-01-01&end_time=2025-01-32',
  '/v1/export/campaigns.json?start_time=2025-01-01&end_time=2025-01-31&limit=%00&filters.device=%ff&x[]',
  '/v1/export/campaigns.csv?start_time=2025-01-01&end_time=2025-01-31&link=a.1.x',
  '/v1/links/ad_units.parquet',
  '/mcp',
  '/v1/campaigns#x',
  'http://evil.example/v1/campaigns',
  'gopher://x',
  'v1',
  '/\\v1',
  '/healthz',
  '/__proto__',
  '/constructor',
];
const pieces = [
  "' OR 1=1 --",
  '{account:String}',
  ') UNION ALL SELECT * FROM tokens',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of FORMAT Template
  '${data}',
  '\0',
  '\u{1F600}',
  '\ud800',
  '../../',
  '%s%n',
  '<script>',
  'x'.repeat(300),
  '9'.repeat(40),
  '-1',
  '1e999',
  'NaN',
  'null',
  '\\',
  '"',
  '\u202e',
];
const dates = [
  '2026-03-01',
  '2026-02-30',
  '0000-00-00',
  '9999-12-31',
  '1969-12-31',
  '2149-06-07',
  '2026-3-1',
  '2026-03-01T00:00:00Z',
  '0000-01-01T00:00:00+23:59',
  '9999-12-31T23:59:59.9999999999999Z',
  '+002026-03-01',
  '２０２６-03-01',
  '',
];

/** Optional fields of a body as they may be. */
const options: Readonly<Record<string, readonly unknown[]>> = {
  filters: [
    {},
    { device: ['mobile'] },
    { campaign: pieces },
    { campaign_id: [''] },
    { site: ['x'] },
    { __proto__: 1 },
  ],
  metrics: [['cpc'], ['spent', 'spent'], pieces],
  order_by: [
    [{ field: 'spent' }],
    [{ field: 'campaign', direction: 'desc' }],
    [{ field: 'spent_change' }],
    [[]],
  ],
  limit: [1, 10_000_000, 0, -1, 1e300, 0.1],
  totals: [true, false],
  time_grain: ['day', 'week', 'month'],
  compare_to: ['previous_period', 'previous_year', { start_time: dates[0], end_time: dates[3] }, {}],
};

/** One request that is wrong in some way, or in several; of a given version, or mostly of HTTP/1.1. */
export function malformed(random: () => number, token: string, version?: string): Buffer {
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const mostly = <T>(usual: T, other: () => T): T => (random() < 0.75 ? usual : other());
  const noise = (length: number) =>
    Buffer.from(Array.from({ length }, () => Math.floor(random() * 256))).toString('latin1');
  const value = (): unknown =>
    one<() => unknown>([
      () => one(dates),
      () => one(pieces),
      () => null,
      () => random() * 1e6,
      () => [one(dates)],
      () => ({ a: one(pieces) }),
      () => true,
    ])();
  const usual = one(['/v1/campaigns', '/v1/campaigns/breakdowns/date', '/v1/campaigns/changes']);
  const json = () => {
    const fields: Record<string, unknown> = {
      start_time: mostly('2026-03-01', value),
      end_time: mostly('2026-03-31', value),
      ...(usual !== '/v1/campaigns' && { changed_since: mostly('2026-03-01T00:00:00.000001+01:00', value) }),
    };
    while (random() < 0.4) {
      const option = one(Object.keys(options));
      fields[option] = mostly(one(options[option] ?? []), value);
    }
    if (random() < 0.3) fields[one(['account', '__proto__', 'limit', 'account_id', one(pieces)])] = value();
    return JSON.stringify(fields);
  };
  const body = one<() => string>([
    json,
    json,
    json,
    () => json().slice(0, Math.floor(random() * 40)),
    () => noise(60),
    () => '['.repeat(8_000),
    () => `{"start_time":"${'x'.repeat(600_000)}"}`,
    () => '',
    () => '﻿{}',
    () => `{"start_time":"2026-03-01","start_time":${JSON.stringify(one(pieces))},"end_time":"2026-03-01"}`,
  ])();
  const mistyped = `${token.slice(0, 20)}${noise(1)}${token.slice(21)}`;
  const authorization = mostly(`Bearer ${token}`, () =>
    one([
      `Bearer ${mistyped}`,
      `Bearer adt_${'a'.repeat(36)}`,
      'Bearer',
      'Basic YTpi',
      `Bearer ${one(pieces)}`,
      noise(20),
      `Bearer ${token},${token}`,
    ]),
  );
  const headers = [
    mostly('Host: localhost', () =>
      one(['Host: ', `Host: ${one(pieces)}`, 'Host: a\r\nHost: b', 'X: y', 'Host: [::1']),
    ),
    `Authorization: ${authorization}`,
    mostly(
      'Content-Type: application/json',
      () => `Content-Type: ${one(['', 'text/html', one(pieces), noise(10), 'application/json;'.repeat(50)])}`,
    ),
    mostly(`Content-Length: ${Buffer.byteLength(body)}`, () =>
      one([
        'Content-Length: -1',
        'Content-Length: 99999999999999999999',
        'Content-Length: 1',
        'Content-Length: x',
        'Transfer-Encoding: chunked',
        'Transfer-Encoding: gzip, chunked',
        'Content-Length: 3\r\nTransfer-Encoding: chunked',
        'Content-Length: 1\r\nContent-Length: 2',
        'X-No: length',
      ]),
    ),
    'Connection: close',
  ];
  while (random() < 0.35) {
    headers.push(
      one([
        `Accept: ${one(pieces)}`,
        'Accept: */*;q=0',
        `Accept-Encoding: ${one(pieces)}`,
        'Accept-Encoding: identity;q=0,*;q=0',
        `X-Request-Id: ${one(pieces)}`,
        `traceparent: ${one(pieces)}`,
        'Expect: 100-continue',
        'Expect: more',
        'Upgrade: websocket',
        'Range: bytes=0-1',
        'If-None-Match: "',
        `Authorization: Basic ${noise(20)}`,
        `X: ${'y'.repeat(random() < 0.1 ? 20_000 : 100)}`,
        ' folded',
        'no colon',
        ': no name',
        `${noise(5)}: ${noise(5)}`,
        'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT',
      ]),
    );
  }
  const spoken =
    version ?? (random() < 0.95 ? 'HTTP/1.1' : one(['HTTP/1.0', 'HTTP/2.0', 'HTTP/9.9', 'http/1.1', '']));
  const line = `${mostly('POST', () => one(methods))} ${mostly(usual, () => one(paths))} ${spoken}`;
  const head = [line, ...headers, '', ''].join(random() < 0.97 ? '\r\n' : '\n');
  const bytes = Buffer.concat([Buffer.from(head, random() < 0.5 ? 'utf8' : 'latin1'), Buffer.from(body)]);
  // Bits turn over on the way.
  if (random() < 0.15) {
    const at = Math.floor(random() * bytes.length);
    bytes[at] = Math.floor(random() * 256);
  }
  return random() < 0.03 ? bytes.subarray(0, Math.floor(random() * bytes.length)) : bytes;
}
