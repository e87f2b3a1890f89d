import { once } from 'node:events';
import { expect, test } from 'vitest';
import { length, useUploads } from '../../support/uploads.ts';

const { areRefused, head, raw } = useUploads();

// Slow lines are in refused-uploads.thorough.test.ts.
areRefused([
  ['is too large', 413, [length(50)], undefined, 0],
  ['is too large, in chunks', 413, ['Transfer-Encoding: chunked'], undefined, 0],
  ['is no JSON', 415, [length(50), 'Content-Type: text/plain'], undefined, 0],
  ['has no valid token', 401, [length(50)], 'Bearer nothing', 0],
]);

test('a caller that waits for 100 Continue sends its body only when it is wanted', async () => {
  const body = '{"start_time":"2025-01-01","end_time":"2025-01-31"}';
  const wanted = raw();
  wanted.write(await head(['Expect: 100-continue', 'Content-Length: 51', 'Connection: close']));
  const [first] = await once(wanted, 'data');
  expect(String(first)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  wanted.write(body);
  let answer = '';
  for await (const piece of wanted) answer += piece;
  expect(answer.slice(0, 12)).toBe('HTTP/1.1 200');

  for (const [status, start] of [
    [413, await head(['Expect: 100-continue', length(50)])],
    [415, await head(['Expect: 100-continue', length(50), 'Content-Type: text/plain'])],
    [401, await head(['Expect: 100-continue', length(50)], 'Bearer nothing')],
  ] as const) {
    const refused = raw();
    refused.write(start);
    let text = '';
    // It is closed: whether a body follows nobody could tell.
    for await (const piece of refused) text += piece;
    expect(text).toMatch(
      new RegExp(`^HTTP/1.1 ${status} [^]*\r\nconnection: close\r\n[^]*"request_id"`, 'i'),
    );
  }
});
