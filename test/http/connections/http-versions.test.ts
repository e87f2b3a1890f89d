import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { reportFormats } from '../../../src/report/formats.ts';
import { startProcess } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
// Some kernels know no IPv6.
const onAllAddresses = useService(db, { HOST: existsSync('/proc/net/if_inet6') ? '::' : '0.0.0.0' });
const path = '/v1/campaigns/breakdowns/device_creative_date';
const body = '{"start_time":"2026-01-01","end_time":"2026-12-31"}';

/** All that comes back until the service closes the connection. */
async function ask(version: string, headers: readonly string[]): Promise<{ head: string; content: string }> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  await once(socket, 'connect');
  const lines = [
    `POST ${path} ${version}`,
    'Host: localhost',
    `Authorization: Bearer ${await service.token('a')}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...headers,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  const [head = '', content = ''] = (await text(socket)).split('\r\n\r\n');
  return { head, content };
}

const codings = ['identity', 'gzip', 'zstd', 'br'];
const asked = Object.values(reportFormats).map(({ mediaType }, n) => [mediaType, codings[n % 4]] as const);

test.each(asked)(
  'no report over a version in which a broken answer looks whole: %s, %s',
  async (type, coding) => {
    const accepted = [`Accept: ${type}`, `Accept-Encoding: ${coding}`];
    for (const [version, ...more] of [
      ['HTTP/1.0'],
      ['HTTP/1.0', 'Connection: keep-alive'],
      ['HTTP/1.0', 'TE: chunked'],
      ['HTTP/2.0'],
    ] as const) {
      const { head, content } = await ask(version, [...accepted, ...more]);
      expect(head).toMatch(/^HTTP\/1\.1 (426|400) /);
      expect(JSON.parse(content)).toMatchObject({
        code: expect.stringMatching(/^(http_version_too_old|malformed_message)$/),
      });
      if (version === 'HTTP/1.0') expect(head).toMatch(/^HTTP\/1\.1 426 [\s\S]*\r\nupgrade: HTTP\/1\.1\r\n/i);
    }
    expect((await ask('HTTP/1.1', [...accepted, 'Connection: close'])).head).toMatch(/^HTTP\/1\.1 200 /);
  },
);

test('curl -0 is told what it needs, and fails where a failure is asked for', async () => {
  const { token, url } = { token: await service.token('a'), url: service.url };
  const curl = (...args: string[]) =>
    startProcess('curl', [
      ...['-0', '-sS', '-d', body, '-H', 'content-type: application/json'],
      ...['-H', `authorization: Bearer ${token}`, ...args, `${url}${path}`],
    ]).ended;
  const told = await curl();
  expect(told.code).toBe(0);
  expect(JSON.parse(told.stdout)).toMatchObject({ status: 426, detail: expect.stringContaining('HTTP/1.1') });
  expect((await curl('--fail')).code).toBe(22);
});

test('what has a length is answered over HTTP/1.0 as before', async () => {
  const { stdout } = await startProcess('curl', ['-0', '-sS', `${service.url}/healthz`]).ended;
  expect(JSON.parse(stdout)).toEqual({ status: 'ok' });
});

test.each([
  ['one address', service],
  ['all addresses, of IPv6 too where there is one', onAllAddresses],
])('a health check over HTTP/1.0 that names no host is answered on %s', async (_, { url }) => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET /healthz HTTP/1.0\r\n\r\n');
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /);
});
