import { once } from 'node:events';
import { connect as dial, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { createToken } from '../../src/accounts/tokens.ts';
import { type Command, environmentOf, listening, postJson, useCommands } from '../support/process.ts';
import type { TestStore } from '../support/store.ts';

export type CalledService = ReturnType<typeof useCalledService>;
type Check = (lines: readonly { readonly level: number; readonly status?: number }[]) => void;

export const content = '{"start_time":"2025-01-01","end_time":"2025-01-31"}';

/** A service as a process of its own, with callers that are no HTTP client. */
export function useCalledService(db: TestStore, env: Record<string, string> = {}) {
  const commands = useCommands();
  const opened: Socket[] = [];
  const checks: Check[] = [];
  let serve: Command;
  let url: string;
  let token: string;
  beforeAll(async () => {
    token = await createToken(db.store, { account: 'large', label: '' });
    serve = commands.start(['serve'], {
      ...environmentOf(db.address),
      PORT: '0',
      RATE_LIMIT_REQUESTS: '100000',
      MAX_CONCURRENT_REPORTS: '40',
      SEND_TIMEOUT_SECONDS: '2',
      ...env,
    });
    url = await listening(serve);
  });
  afterAll(async () => {
    for (const socket of opened) socket.destroy();
    const { code, stderr } = await serve.kill('SIGTERM');
    expect(code).toBe(0);
    const logged: Parameters<Check>[0] = stderr
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    // Callers that left before the first byte are no failure of the service.
    expect(logged.filter(({ level }) => level >= 50)).toEqual([]);
    for (const check of checks) check(logged);
  });

  /** A small report that is right: nothing that came before has harmed the service. */
  const expectReport = async () => {
    const response = await postJson(`${url}/v1/campaigns`, token, content);
    expect(response.status).toBe(200);
    expect(JSON.parse(await response.text()).result.rows).toEqual([]);
  };
  beforeEach(expectReport);

  const raw = () => {
    const socket = dial({ host: '127.0.0.1', port: Number(new URL(url).port) });
    opened.push(socket);
    return socket.setEncoding('latin1');
  };
  return {
    get url() {
      return url;
    },
    get token() {
      return token;
    },
    get pid() {
      return serve.pid;
    },
    /** What the service logged, once all tests of the file are done. */
    onLog: (check: Check) => void checks.push(check),
    expectReport,
    /** What comes back over one connection until the service closes it; `pieces` are sent at once. */
    exchange: (...pieces: readonly string[]) => {
      const socket = raw();
      for (const piece of pieces) socket.write(piece);
      return untilClosed(socket);
    },
    raw,
    message: (extra: readonly string[] = [], body = content, target = '/v1/campaigns') => {
      const own = extra.some((line) => /^(transfer-encoding|content-length):/i.test(line));
      return [
        `POST ${target} HTTP/1.1`,
        ...(extra.some((line) => /^host:/i.test(line)) ? [] : ['Host: localhost']),
        `Authorization: Bearer ${token}`,
        'Content-Type: application/json',
        ...(own ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
        ...extra,
        '',
        body,
      ].join('\r\n');
    },
  };
}

export async function untilClosed(socket: Socket): Promise<string> {
  let answer = '';
  socket.on('data', (text) => {
    answer += text;
  });
  socket.on('error', () => {
    // A connection that is reset has ended as well.
  });
  await once(socket, 'close');
  return answer;
}

export const statusesOf = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
