import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Hono } from 'hono';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpEnv } from '../../../src/http/request/env.ts';
import { type Listening, listen } from '../../../src/http/server/listen.ts';
import { openLog } from '../../../src/observe/log.ts';
import { signal } from '../../support/held.ts';
import { receivedAnswers } from '../received-answers.ts';

/** What the app was given, in this order, and how it is told to answer the first. */
let worked: string[] = [];
let answerFirst = (): void => undefined;
let lines: string[] = [];
let listening: Listening;
let atOnce = 0;
let mostAtOnce = 0;
let left = 0;

beforeEach(async () => {
  [worked, lines, left, atOnce, mostAtOnce] = [[], [], 0, 0, 0];
  const first = new Promise<void>((resolve) => {
    answerFirst = resolve;
  });
  const app = new Hono<HttpEnv>().all('*', async (c) => {
    mostAtOnce = Math.max(mostAtOnce, ++atOnce);
    worked.push(c.req.path);
    c.env.outgoing.once('close', () => {
      if (!c.env.outgoing.writableFinished) left++;
    });
    const content = await c.req.text();
    await first;
    atOnce--;
    return c.text(`${c.req.path} ${content.length}`);
  });
  const log = openLog('info', { write: (line) => void lines.push(line) });
  const limits = { maxConnections: 10, sendTimeoutSeconds: 60 };
  listening = await listen(app, { host: '127.0.0.1', port: 0, ...limits }, log);
});
afterEach(() => listening.connections.stop(0));

const closing = new Map<Socket, Promise<unknown>>();
/** A connection that has sent these requests, each with a body of so many bytes. */
function sent(paths: readonly string[], bodyBytes = 100): Socket {
  const socket = connect(Number(new URL(listening.url).port), '127.0.0.1');
  // Whoever is cut off may be told so by a reset.
  socket.on('error', () => undefined);
  closing.set(socket, new Promise((resolve) => socket.once('close', resolve)));
  const body = 'x'.repeat(bodyBytes);
  const messages = paths.map(
    (path) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n\r\n${body}`,
  );
  socket.write(messages.join(''));
  return socket;
}

const paths = (n: number) => Array.from({ length: n }, (_, i) => `/${i}`);

test.each([0, 100, 40_000])(
  '4 requests sent without waiting, with %i bytes each, are worked on one at a time and answered in order',
  async (bytes) => {
    const socket = sent(paths(4), bytes);
    let given = '';
    socket.on('data', (piece) => {
      given += piece.toString('latin1');
    });
    answerFirst();
    await expect.poll(() => receivedAnswers(given).length).toBe(4);
    expect(receivedAnswers(given).map(({ body }) => body)).toEqual(
      paths(4).map((path) => `${path} ${bytes}`),
    );
    expect(mostAtOnce).toBe(1);
    socket.destroy();
  },
);

test('a caller who sends more without waiting is hung up on, and others are served', async () => {
  const floods = [sent(paths(5)).resume(), sent(paths(1_000)).resume()];
  await Promise.all(floods.map((socket) => closing.get(socket)));
  answerFirst();
  const [answer] = await once(sent(['/other']), 'data');
  expect(String(answer)).toContain('/other 100');
  expect(worked).toEqual(['/0', '/0', '/other']);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('a caller sent too many requests without waiting for the answers');
});

test('what waits behind a request is not worked on when the caller leaves', async () => {
  const socket = sent(paths(4));
  await expect.poll(() => worked).toEqual(['/0']);
  socket.resetAndDestroy();
  await expect.poll(() => left).toBe(1);
  answerFirst();
  const [answer] = await once(sent(['/other']), 'data');
  expect(String(answer)).toContain('/other 100');
  expect(worked).toEqual(['/0', '/other']);
});

test('a caller who leaves an answer unread is cut off, whatever was asked for', async () => {
  // More than the network takes.
  const bytes = 30_000_000;
  const [onClose, closed] = signal();
  const app = new Hono<HttpEnv>().all('*', (c) => {
    c.env.outgoing.once('close', onClose);
    return c.body('x'.repeat(bytes));
  });
  const limits = { maxConnections: 10, sendTimeoutSeconds: 1 };
  const short = await listen(
    app,
    { host: '127.0.0.1', port: 0, ...limits },
    openLog('silent', { write: () => undefined }),
  );
  const socket = connect(Number(new URL(short.url).port), '127.0.0.1')
    .on('error', () => undefined)
    .pause();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await closed;
  const ended = once(socket, 'close');
  socket.resume();
  await ended;
  expect(socket.bytesRead).toBeLessThan(bytes);
  await short.connections.stop(0);
});
