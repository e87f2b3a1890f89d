import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Where hostile callers go, as whom, and when they stop. */
export interface Target {
  readonly url: string;
  readonly token: string;
  readonly signal: AbortSignal;
}

interface Request {
  readonly path?: string;
  readonly token?: string;
  readonly version?: string;
  readonly body?: string;
}

const year = '{"start_time":"2026-01-01","end_time":"2026-12-31"}';

function message({ path = '/v1/campaigns', token = '', version = '1.1', body = year }: Request): string {
  return `POST ${path} HTTP/${version}\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

const large = '/v1/campaigns/breakdowns/device_creative_date';

/** Each does harm of one kind for a few seconds at most; their names are told when one fails. */
export const attacks: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  'asks for all and reads nothing': (target) =>
    onSocket(target, async (socket) => {
      socket.pause();
      socket.write(message({ path: large, token: target.token }));
      await delay(20_000, undefined, { signal: target.signal });
    }),
  'asks for all and reads a little each second': (target) =>
    onSocket(target, async (socket) => {
      socket.write(message({ path: large, token: target.token }));
      for (let second = 0; second < 20; second++) {
        socket.pause();
        await delay(1_000, undefined, { signal: target.signal });
        socket.read(2_048);
      }
    }),
  'hangs up in the middle': (target) =>
    onSocket(target, async (socket) => {
      socket.write(message({ path: large, token: target.token }));
      await Promise.race([once(socket, 'data'), delay(2_000, undefined, { signal: target.signal })]);
    }),
  'asks over HTTP/1.0': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(message({ version: '1.0', path: large, token: target.token }));
      await once(socket, 'close');
    }),
  'asks fifty times without waiting for an answer': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(message({ token: target.token }).repeat(50));
      await delay(3_000, undefined, { signal: target.signal });
    }),
  'sends what is no HTTP': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(`${'\0\xff'.repeat(500)}\r\n\r\n`);
      await Promise.race([once(socket, 'close'), delay(3_000, undefined, { signal: target.signal })]);
    }),
  'sends half a message': (target) =>
    onSocket(target, async (socket) => {
      socket.resume().write(message({ token: target.token }).slice(0, -20));
      await delay(5_000, undefined, { signal: target.signal });
    }),
  'guesses tokens': (target) =>
    onSocket(target, async (socket) => {
      for (let guess = 0; guess < 30; guess++) socket.resume().write(message({ token: `guess-${guess}` }));
      await delay(2_000, undefined, { signal: target.signal });
    }),
  'asks what needs no token': (target) =>
    onSocket(target, async (socket) => {
      for (const path of ['/readyz', '/metrics', '/openapi.json', '/healthz', '/docs']) {
        socket.resume().write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(20));
      }
      await delay(2_000, undefined, { signal: target.signal });
    }),
};

async function onSocket({ url, signal }: Target, work: (socket: Socket) => Promise<unknown>): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.66' }).on(
    'error',
    () => {
      // The service may hang up on them whenever it likes.
    },
  );
  try {
    await once(socket, 'connect', { signal });
    await work(socket);
  } catch (error) {
    if (!signal.aborted && (error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    socket.destroy();
  }
}
