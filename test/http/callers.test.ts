import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { connect as dial, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { insertLarge } from '../support/accounts.ts';
import { type Command, listening, openReport, useCommands } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();
let serve: Command;
let url: string;
let token: string;
const opened: Socket[] = [];

beforeAll(async () => {
  await insertLarge(db.store, ['large']);
  token = await createToken(db.store, { account: 'large', label: '' });
  const { url: clickhouse, user, password } = inject('clickhouse');
  serve = commands.start(['serve'], {
    CLICKHOUSE_URL: clickhouse,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: db.address.database,
    PORT: '0',
    RATE_LIMIT_REQUESTS: '100000',
    MAX_CONCURRENT_REPORTS: '40',
    SEND_TIMEOUT_SECONDS: '2',
  });
  url = await listening(serve);
});
beforeEach(() => expectReport());
afterAll(async () => {
  for (const socket of opened) socket.destroy();
  const { code, stderr } = await serve.kill('SIGTERM');
  expect(code).toBe(0);
  const logged = stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  // Callers that left before the first byte are no failure of the service.
  expect(logged.filter(({ level }) => level >= 50)).toEqual([]);
  expect(logged.filter(({ status }) => status === 499)).not.toEqual([]);
});

/** A small report that is right: nothing that came before has harmed the service. */
async function expectReport(): Promise<void> {
  const response = await fetch(`${url}/v1/campaigns`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"start_time":"2025-01-01","end_time":"2025-01-31"}',
  });
  expect(response.status).toBe(200);
  expect(JSON.parse(await response.text()).result.rows).toEqual([]);
}

async function reportsRunning(): Promise<number> {
  const running = await select(
    db.store,
    `SELECT 1 FROM system.processes WHERE current_database = currentDatabase() AND query LIKE '%FORMAT Template%'
       AND query NOT LIKE '%system.processes%'`,
  );
  return running.length;
}

function memoryMb(): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${serve.pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** What comes back over one connection until the service closes it; `pieces` are sent at once. */
function exchange(...pieces: readonly string[]): Promise<string> {
  const socket = raw();
  for (const piece of pieces) socket.write(piece);
  return untilClosed(socket);
}

function raw(): Socket {
  const socket = dial({ host: '127.0.0.1', port: Number(new URL(url).port) });
  opened.push(socket);
  return socket.setEncoding('latin1');
}

async function untilClosed(socket: Socket): Promise<string> {
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

const content = '{"start_time":"2025-01-01","end_time":"2025-01-31"}';
function message(extra: readonly string[] = [], body = content, target = '/v1/campaigns'): string {
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
}

const statusesOf = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

test('20 callers that read nothing are cut off, and neither their statements nor their memory stay', async () => {
  const before = memoryMb();
  const answers: IncomingMessage[] = [];
  for (let n = 0; n < 20; n++) {
    const answer = await openReport(url, { token });
    answer.on('error', () => undefined);
    answers.push(answer);
  }
  await expectReport();
  await expect.poll(reportsRunning, { timeout: 10_000, interval: 100 }).toBe(0);
  for (const answer of answers) answer.resume();
  await expect.poll(() => answers.every(({ closed }) => closed), { timeout: 10_000 }).toBe(true);
  expect(answers.filter(({ complete }) => complete)).toEqual([]);
  await expect.poll(memoryMb, { timeout: 10_000 }).toBeLessThan(before + 60);
});

test('200 callers that disconnect, before the first byte or in the middle, leave nothing behind', async () => {
  const before = memoryMb();
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 20 }, (_, n) => {
      const socket = raw();
      socket.on('error', () => undefined);
      socket.write(
        message(
          [],
          '{"start_time":"2026-01-01","end_time":"2026-01-15"}',
          '/v1/campaigns/breakdowns/device_creative_date',
        ),
      );
      return { socket, middle: n % 2 === 0 };
    });
    await Promise.all(
      sockets.map(async ({ socket, middle }) => {
        await once(socket, middle ? 'readable' : 'connect');
        socket.destroy();
      }),
    );
  }
  await expect.poll(reportsRunning, { timeout: 5_000, interval: 50 }).toBe(0);
  await expect
    .poll(
      async () => /^adtally_reports_running (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1],
    )
    .toBe('0');
  await expect.poll(memoryMb, { timeout: 10_000 }).toBeLessThan(before + 60);
}, 120_000);

test('requests sent without waiting for answers are answered each, in order', async () => {
  const wrong = message([], '{}');
  const answer = await exchange(message(), wrong, message(), message(['Connection: close']));
  expect(statusesOf(answer)).toEqual([200, 400, 200, 200]);
});

test.each<[string, string[], string | undefined, number]>([
  ['an absolute URI', [], 'http://adtally.example/v1/campaigns', 200],
  ['an absolute URI of another scheme', [], 'gopher://adtally.example/v1/campaigns', 400],
  ['two Host headers', ['Host: a.example', 'Host: b.example'], undefined, 200],
  ['a Host that is none', ['Host: a b/c'], undefined, 400],
  ['a second token', ['Authorization: Bearer other'], undefined, 401],
  ['a second length', ['Content-Length: 51', 'Content-Length: 5'], undefined, 400],
  ['a length and chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], undefined, 400],
  ['a folded header', ['X-Note: one', ' two'], undefined, 400],
  ['a header name with a blank', ['X Note: one'], undefined, 400],
  ['a bare carriage return in a header', ['X-Note: one\rtwo'], undefined, 400],
  ['headers of 100 kB', [`X-Note: ${'x'.repeat(100_000)}`], undefined, 431],
  ['3,000 headers', Array.from({ length: 3_000 }, (_, n) => `X-${n}: y`), undefined, 431],
  ['a path of 100 kB', [], `/v1/${'x'.repeat(100_000)}`, 431],
  ['chunks that are none', ['Transfer-Encoding: chunked'], undefined, 400],
])('a request with %s gets one clear answer', async (_, headers, target, status) => {
  const answer = await exchange(message([...headers, 'Connection: close'], content, target));
  expect(statusesOf(answer)).toEqual([status]);
  if (status >= 400) expect(answer).toMatch(/content-type: application\/problem\+json\r\n/i);
});

test('what is smuggled behind a request that is not understood is not carried out', async () => {
  const smuggled = message([], content, '/v1/smuggled');
  const answer = await exchange(
    message(['Content-Length: 5', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`),
  );
  expect(statusesOf(answer)).toEqual([400]);
});

test('callers that trickle their headers or their body are cut off, and others are served meanwhile', async () => {
  const startedAt = performance.now();
  const whole = [message(), message(['Transfer-Encoding: chunked'], '5\r\n{"sta\r\n')];
  const cuts = [60, (whole[0]?.length ?? 0) - 20, whole[1]?.length ?? 0];
  const sockets = cuts.map((cut, n) => {
    const socket = raw();
    socket.write((n === 2 ? whole[1] : whole[0])?.slice(0, cut) ?? '');
    const rest = n === 2 ? '' : (whole[0]?.slice(cut) ?? '');
    let at = 0;
    const trickle = setInterval(() => socket.write(n === 2 ? '1\r\nx\r\n' : (rest[at++] ?? '')), 4_000);
    socket.once('close', () => clearInterval(trickle));
    return untilClosed(socket);
  });
  await expectReport();
  const answers = await Promise.all(sockets);
  expect(answers.map(statusesOf)).toEqual([[408], [408], [408]]);
  expect(performance.now() - startedAt).toBeLessThan(45_000);
});

test('300 idle connections keep nobody out, and one that was idle for a while is still good', async () => {
  const sockets = Array.from({ length: 300 }, raw);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await expectReport();
  const [kept] = sockets;
  kept?.write(message());
  const [first] = kept ? await once(kept, 'data') : [];
  expect(statusesOf(String(first))).toEqual([200]);
  // Longer than Node would keep it by itself.
  const resting = performance.now();
  await expect.poll(() => performance.now() - resting, { timeout: 10_000 }).toBeGreaterThan(7_000);
  expect(kept?.closed).toBe(false);
  kept?.write(message());
  const [second] = kept ? await once(kept, 'data') : [];
  expect(statusesOf(String(second))).toEqual([200]);
});
