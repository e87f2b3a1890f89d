import { once } from 'node:events';
import { connect as dial, type Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { type TestService, useService } from './service.ts';
import { useStore } from './store.ts';

/** Why, the status, headers, and an Authorization that is not the right one; a pause makes a slow line. */
type Refusal = readonly [
  why: string,
  status: number,
  headers: readonly string[],
  authorization: string | undefined,
  pauseMs: number,
];

export interface Uploads {
  readonly service: TestService;
  head(extra: readonly string[], authorization?: string): Promise<string>;
  raw(options?: { allowHalfOpen: boolean }): Socket;
  /** A test for each: its caller reads why, and the connection stays good. */
  areRefused(refusals: readonly Refusal[]): void;
}

const megabyte = Buffer.alloc(1 << 20, 'x');
export const length = (megabytes: number): string => `Content-Length: ${megabytes << 20}`;

export function useUploads(): Uploads {
  const db = useStore();
  const service = useService(db);
  const opened: Socket[] = [];
  afterAll(() => {
    for (const socket of opened) socket.destroy();
  });
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

  const areRefused: Uploads['areRefused'] = (refusals) =>
    test.each(refusals)(
      'the caller of an upload of 50 MB that %s reads the %i',
      async (_, status, headers, authorization, pauseMs) => {
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
          // The connection is good for the next request.
          socket.write(
            `${await head(['Content-Length: 51'])}{"start_time":"2025-01-01","end_time":"2025-01-31"}`,
          );
          expect((await nextAnswer(socket)).slice(0, 12)).toBe('HTTP/1.1 200');
          socket.destroy();
        }
      },
      60_000,
    );
  return { service, head, raw, areRefused };
}

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
