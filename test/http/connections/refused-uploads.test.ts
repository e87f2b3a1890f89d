import { once } from 'node:events';
import { connect as dial, type Socket } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const opened: Socket[] = [];
afterAll(() => {
  for (const socket of opened) socket.destroy();
});
const megabyte = Buffer.alloc(1 << 20, 'x');
const tooLong = `Content-Length: ${50 << 20}`;

function raw(options = { allowHalfOpen: false }): Socket {
  const socket = dial({ host: '127.0.0.1', port: Number(new URL(service.url).port), ...options });
  opened.push(socket);
  return socket;
}

async function head(extra: readonly string[], authorization?: string): Promise<string> {
  return [
    'POST /v1/campaigns HTTP/1.1',
    'Host: localhost',
    `Authorization: ${authorization ?? `Bearer ${await service.token('a')}`}`,
    ...(extra.some((line) => line.startsWith('Content-Type')) ? [] : ['Content-Type: application/json']),
    ...extra,
    '',
    '',
  ].join('\r\n');
}

/** Sends everything before it reads anything, as simple clients do. */
async function upload(start: string, megabytes: number, chunked: boolean, pauseMs: number) {
  const socket = raw().pause();
  let failure: NodeJS.ErrnoException | undefined;
  socket.on('error', (error) => {
    failure = error;
  });
  socket.write(start);
  for (let n = 0; n < megabytes; n++) {
    if (chunked) socket.write('100000\r\n');
    await new Promise((resolve) => socket.write(megabyte, resolve));
    if (chunked) socket.write('\r\n');
    if (pauseMs) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  if (chunked) socket.write('0\r\n\r\n');
  return { answer: await nextAnswer(socket), failure, socket };
}

const refusals: readonly [string, number, readonly string[], string | undefined][] = [
  ['is too large', 413, [tooLong], undefined],
  ['is too large, in chunks', 413, ['Transfer-Encoding: chunked'], undefined],
  ['is no JSON', 415, [tooLong, 'Content-Type: text/plain'], undefined],
  ['has no valid token', 401, [tooLong], 'Bearer nothing'],
];
const lines = [
  ['', 0],
  [', over a slow line', 30],
] as const;

describe.each(lines)('an upload of 50 MB%s', (_, pauseMs) => {
  test.concurrent.each(refusals)(
    'that %s: its caller reads the %i, and the connection stays good',
    async (_why, status, headers, authorization) => {
      const chunked = headers.includes('Transfer-Encoding: chunked');
      for (const connection of ['keep-alive', 'close']) {
        const start = await head([...headers, `Connection: ${connection}`], authorization);
        const { answer, failure, socket } = await upload(start, 50, chunked, pauseMs);
        expect({ answer: answer.slice(0, 12), failure }).toEqual({
          answer: `HTTP/1.1 ${status}`,
          failure: undefined,
        });
        expect(answer).toContain('"request_id"');
        if (connection === 'close') {
          if (!socket.destroyed) await once(socket.resume(), 'close');
          continue;
        }
        socket.write(
          `${await head(['Content-Length: 51'])}{"start_time":"2025-01-01","end_time":"2025-01-31"}`,
        );
        expect((await nextAnswer(socket)).slice(0, 12)).toBe('HTTP/1.1 200');
        socket.destroy();
      }
    },
    60_000,
  );
});

/** One answer with its body. */
async function nextAnswer(socket: Socket): Promise<string> {
  let text = '';
  for (;;) {
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN);
    const end = text.indexOf('\r\n\r\n');
    if (end >= 0 && text.length >= end + 4 + length) return text;
    if (/transfer-encoding: chunked/i.test(text) && text.endsWith('\r\n0\r\n\r\n')) return text;
    const piece = socket.read() as Buffer | null;
    if (piece !== null) text += piece.toString('latin1');
    else if (socket.destroyed || socket.readableEnded) return text;
    else await Promise.race([once(socket, 'readable'), once(socket, 'close')]).catch(() => undefined);
  }
}

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
    [413, await head(['Expect: 100-continue', tooLong])],
    [415, await head(['Expect: 100-continue', tooLong, 'Content-Type: text/plain'])],
    [401, await head(['Expect: 100-continue', tooLong], 'Bearer nothing')],
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

test('a caller that neither sends the rest of a refused upload nor leaves is cut off', async () => {
  const socket = raw({ allowHalfOpen: true });
  const failure = new Promise<NodeJS.ErrnoException>((resolve) => socket.once('error', resolve));
  socket.resume().write(await head([tooLong, 'Connection: close']));
  await once(socket, 'end');
  // Every five seconds it must have sent something. A caller that has heard the end learns of the cut only by sending on.
  const paused = performance.now();
  await expect.poll(() => performance.now() - paused, { timeout: 15_000 }).toBeGreaterThan(11_000);
  const again = setInterval(() => socket.write('x'), 100);
  expect((await failure).code).toMatch(/^(ECONNRESET|EPIPE)$/);
  clearInterval(again);
}, 30_000);
