import { expect, test } from 'vitest';
import { useStore } from '../../support/store.ts';
import { content, statusesOf, useCalledService } from '../called-service.ts';
import { receivedAnswers } from '../received-answers.ts';

const { exchange, message } = useCalledService(useStore());

test.each<[string, string[], string | undefined, number]>([
  ['an absolute URI', [], 'http://adtally.example/v1/campaigns', 200],
  ['an absolute URI of another scheme', [], 'gopher://adtally.example/v1/campaigns', 400],
  ['two Host headers', ['Host: a.example', 'Host: b.example'], undefined, 400],
  ['two transfer codings', ['Transfer-Encoding: gzip, chunked'], undefined, 400],
  ['an expectation that nobody knows', ['Expect: more'], undefined, 200],
  ['a malformed Host', ['Host: a b/c'], undefined, 400],
  ['a second token', ['Authorization: Bearer other'], undefined, 401],
  ['a second length', ['Content-Length: 51', 'Content-Length: 5'], undefined, 400],
  ['a length and chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], undefined, 400],
  ['a folded header', ['X-Note: one', ' two'], undefined, 400],
  ['a header name with a blank', ['X Note: one'], undefined, 400],
  ['a bare carriage return in a header', ['X-Note: one\rtwo'], undefined, 400],
  ['headers of 100 kB', [`X-Note: ${'x'.repeat(100_000)}`], undefined, 431],
  ['3,000 headers', Array.from({ length: 3_000 }, (_, n) => `X-${n}: y`), undefined, 431],
  ['a path of 100 kB', [], `/v1/${'x'.repeat(100_000)}`, 431],
  ['malformed chunks', ['Transfer-Encoding: chunked'], undefined, 400],
])('a request with %s gets one clear answer', async (_, headers, target, status) => {
  const answer = await exchange(message([...headers, 'Connection: close'], content, target));
  expect(statusesOf(answer)).toEqual([status]);
  if (status >= 400) expect(answer).toMatch(/content-type: application\/problem\+json\r\n/i);
});

test.each([
  ['without Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['to be a proxy', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n', 405],
  ['for the options of all paths', 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
  ['with a method that nobody knows', 'FOO /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['with a method in small letters', 'post /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['with more than a method', 'POSTS /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['with a malformed method', 'F(O /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['without a method', ' /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n', 400],
])('a request %s is answered, too', async (_, request, status) => {
  const answer = await exchange(request);
  expect(statusesOf(answer)).toEqual([status]);
  expect(answer).toMatch(/content-type: application\/problem\+json\r\n/i);
  if (status === 405) expect(answer).toMatch(/\r\nallow: GET, HEAD, POST\r\n/i);
});

test.each([
  ['what is no HTTP', '\0\r\n\r\n', 400],
  ['a method that nobody knows', 'FOO /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a request to be a proxy', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n', 405],
])('%s is refused after the requests before it are answered', async (_, refused, status) => {
  const answer = await exchange(`${message()}${message([], '{}')}${message()}${refused}`);
  expect(statusesOf(answer)).toEqual([200, 400, 200, status]);
});

test('a caller that neither waits for 100 Continue nor for answers gets whole answers', async () => {
  const expecting = message(['Expect: 100-continue']);
  const answer = await exchange(`${message()}${expecting}${expecting}${message(['Connection: close'])}`);
  expect(receivedAnswers(answer).map(({ status, body }) => ({ status, ...JSON.parse(body) }))).toEqual(
    Array(4).fill({ status: 200, result: expect.objectContaining({ rows: [] }) }),
  );
});

test('what is smuggled behind a request that is not understood is not carried out', async () => {
  const smuggled = message([], content, '/v1/smuggled');
  const answer = await exchange(
    message(['Content-Length: 5', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`),
  );
  expect(statusesOf(answer)).toEqual([400]);
});
