import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { Adtally, AdtallyError, Sender, TimeoutError } from '../../clients/typescript/src/index.ts';
import { begins, breaksOff, ends, refuses, useBrokenServer } from '../support/broken-server.ts';
import { checkout } from '../support/process.ts';

const server = useBrokenServer();
const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const row = '{"campaign":"a","spent":1}\n';
const received = { load: '1', accepted: 1, rejected: 0, duplicates: 0, reasons: [], visible_at: '' };

interface Call {
  readonly does: 'asks' | 'sends';
  readonly url?: string;
  readonly tries?: number;
}

interface Outcome {
  /** The name of what a call has failed with, or `none`. */
  readonly error: string;
  readonly text?: string;
  readonly status?: number;
  readonly code?: string;
  /** Seconds. */
  readonly pauses: readonly number[];
}

async function typescript({ does, url = server.url, tries = 2 }: Call): Promise<Outcome> {
  const began: number[] = [];
  const ended: number[] = [];
  const options = {
    url,
    token: 'adt_x',
    tries,
    fetch: async (...request: Parameters<typeof fetch>) => {
      began.push(performance.now());
      return fetch(...request).finally(() => ended.push(performance.now()));
    },
  };
  const pauses = () => began.slice(1).map((at, n) => (at - (ended[n] ?? 0)) / 1000);
  try {
    if (does === 'sends') await new Sender(options).send([{}]);
    else for await (const _ of new Adtally(options).rows('campaigns', march));
    return { error: 'none', pauses: pauses() };
  } catch (error) {
    const { name, message: text, status, code } = error as AdtallyError;
    return { error: name, text, status, code, pauses: pauses() };
  }
}

const program = [
  'import json, sys, time',
  'from adtally import Adtally, Sender',
  'for line in sys.stdin:',
  '    does, url, tries = json.loads(line)',
  '    told = {"error": "none", "pauses": []}',
  '    time.sleep = told["pauses"].append',
  '    try:',
  '        if does == "sends": Sender(url, "adt_x", tries=tries).send([{}])',
  '        else: list(Adtally(url, "adt_x", tries=tries).rows("campaigns", "2026-03-01", "2026-03-31"))',
  '    except Exception as error:',
  '        told.update(error=type(error).__name__, text=str(error))',
  '        told.update({name: getattr(error, name, None) for name in ("status", "code")})',
  '    print(json.dumps(told), flush=True)',
].join('\n');
const PYTHONPATH = `${checkout}clients/python`;
const env = { PATH: process.env.PATH, PYTHONPATH, PYTHONDONTWRITEBYTECODE: '1' };
const interpreter = spawn('python3', ['-c', program], { env, stdio: ['pipe', 'pipe', 'inherit'] });
afterAll(() => interpreter.kill());
const outcomes = createInterface(interpreter.stdout)[Symbol.asyncIterator]();

/** Its pauses are told and not waited for. */
async function python({ does, url = server.url, tries = 2 }: Call): Promise<Outcome> {
  interpreter.stdin.write(`${JSON.stringify([does, url, tries])}\n`);
  return JSON.parse((await outcomes.next()).value);
}

/** A problem as a proxy may send it. */
const refusesWith =
  (status: number, body: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { 'content-type': 'application/problem+json', ...headers });
    response.end(body);
  };
const cutProblem = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, { 'content-type': 'application/problem+json', 'content-length': '99' });
  response.write('{"code":"not_re', () => response.destroy());
};

const both = { typescript, python };
const does = ['asks', 'sends'] as const;

describe.each(['typescript', 'python'] as const)('%s', (name) => {
  const client = both[name];

  test.each([
    ['no answer begins', (response: ServerResponse) => void response.destroy()],
    ['every answer breaks off', breaksOff('{"load"')],
  ])('sends a body as often as it may, with growing pauses: %s', async (_, way) => {
    server.answers(way);
    const { pauses } = await client({ does: 'sends', tries: 3 });
    expect(server.requests).toBe(3);
    expect(pauses).toHaveLength(2);
    expect(pauses[0]).toBeGreaterThan(0.4);
    expect(pauses[1]).toBeGreaterThan(0.7);
  });

  test.each(does)('%s once where a proxy answers with 200, and says what answered', async (does) => {
    const page = 'text/html; charset=utf-8';
    for (const [type, body, said = type] of [
      [page, '<!doctype html>\n<title>Sign in</title>\n'],
      // Of another service.
      ...(does === 'asks' ? ([['application/json', '{"status":"ok"}\n']] as const) : []),
      ['text/plain', ''],
      [undefined, '', 'no content-type'],
    ] as const) {
      server.answers((response) => void response.writeHead(200, type && { 'content-type': type }).end(body));
      expect(await client({ does, tries: 3 })).toMatchObject({
        ...{ error: 'AdtallyError', status: 200, code: 'unknown', pauses: [] },
        text: `what answered is not adtally: it sent ${said}`,
      });
      expect(server.requests).toBe(1);
    }
  });

  test.each(does)('%s once where a proxy redirects, and says to where', async (does) => {
    const location = `${server.url}/x`;
    for (const status of [301, 308]) {
      server.answers(refusesWith(status, 'moved', { location, 'content-type': 'text/html' }));
      expect(await client({ does, tries: 3 })).toMatchObject({
        ...{ error: 'AdtallyError', status, code: 'unknown', pauses: [] },
        text: `HTTP status ${status}: redirects to ${location}`,
      });
      expect(server.requests).toBe(1);
    }
  });

  test.each(does)('%s again at the time that a refusal names, by the clock of who refuses', async (does) => {
    const times = { date: 'Sun, 01 Mar 2026 12:00:00 GMT', 'retry-after': 'Sun, 01 Mar 2026 12:00:01 GMT' };
    const passed = { ...times, 'retry-after': 'Sun, 01 Mar 2026 11:59:59 GMT' };
    const unclear = { ...times, 'retry-after': 'tomorrow' };
    const well = ends(does === 'asks' ? row : JSON.stringify(received));
    const refused = [times, passed, unclear].map((headers) => refusesWith(503, '', headers));
    server.answers(...refused, refuses(429, 'rate_limited', { 'retry-after': '1' }), well);
    const { error, pauses } = await client({ does, tries: 5 });
    expect([error, pauses.length]).toEqual(['none', 4]);
    expect(pauses[0]).toBeGreaterThan(0.99);
    expect(pauses[1]).toBeGreaterThan(0.7);
    expect(pauses[2]).toBeGreaterThan(1.1);
    expect(pauses[3]).toSatisfy((seconds: number) => seconds > 0.99 && seconds < 1.5);
  });

  test.each(does)('%s nothing of what is no URL, and says so at once', async (does) => {
    for (const url of ['nonsense', 'localhost:8080', 'ftp://127.0.0.1:1', 'http://a b']) {
      const { error, text, pauses } = await client({ does, url });
      expect([error, pauses]).toEqual([expect.stringMatching(/^(Type|Value)Error$|^InvalidURL$/), []]);
      expect(text).toContain(url.replace('http://', ''));
    }
  });

  test.each(does)('%s again where a connection is refused, and says so in the end', async (does) => {
    const closed = createServer();
    await once(closed.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`;
    closed.close();
    const { error, text, pauses } = await client({ does, url });
    expect(pauses).toHaveLength(1);
    expect(error).toMatch(/^Connection/);
    expect(text).toMatch(/refused/i);
  });

  test.each(does)('%s again after a refusal that passes, whatever its body', async (does) => {
    const well = ends(does === 'asks' ? row : JSON.stringify(received));
    const passing = [refusesWith(503, '<html>'), refusesWith(503, 'null'), refusesWith(408, '')];
    server.answers(cutProblem(503), ...passing, well);
    expect(await client({ does, tries: 5 })).toMatchObject({ error: 'none' });
    expect(server.requests).toBe(5);
    server.answers((response) => void response.destroy(), refusesWith(503, '', { 'retry-after': '0' }));
    expect(await client({ does, tries: 3 })).toMatchObject({ error: 'AdtallyError', status: 503 });
    expect(server.requests).toBe(3);
  });

  test.each(does)('%s once, and says the status, where a refusal is unreadable', async (does) => {
    for (const way of [cutProblem(400), refusesWith(400, '<html>'), refusesWith(400, 'null')]) {
      server.answers(way);
      const refused = { error: 'AdtallyError', text: 'HTTP status 400', status: 400, code: 'unknown' };
      expect(await client({ does })).toMatchObject(refused);
      expect(server.requests).toBe(1);
    }
    server.answers(refuses(400, 'invalid_request'));
    expect(await client({ does })).toMatchObject({ status: 400, code: 'invalid_request', pauses: [] });
    expect(server.requests).toBe(1);
  });

  test('sends once where what answers is not adtally', async () => {
    for (const body of ['<html>', 'null', '[]', '{}']) {
      server.answers(ends(body));
      const refused = { error: 'AdtallyError', status: 200, code: 'unknown' };
      expect(await client({ does: 'sends' })).toMatchObject(refused);
      expect(server.requests).toBe(1);
    }
  });
});

test('a report is asked for once where Node itself waits no longer, which is a timeout', async () => {
  await fetch('data:,');
  // Node makes it with the first request.
  const { constructor: Agent } = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'));
  const dispatcher = new Agent({ headersTimeout: 100, bodyTimeout: 100 });
  const options = {
    url: server.url,
    token: 'adt_x',
    fetch: (...[url, init]: Parameters<typeof fetch>) => fetch(url, { ...init, dispatcher }),
  };
  for (const way of [() => {}, (response: ServerResponse) => void begins(response).write(row)]) {
    server.answers(way);
    await expect(new Adtally(options).report('campaigns', march)).rejects.toBeInstanceOf(TimeoutError);
    expect(server.requests).toBe(1);
  }
});

test('an abort ends the pause between two tries of a body', async () => {
  server.answers(refuses(503, 'store_busy', { 'retry-after': '60' }));
  const abort = new AbortController();
  const sent = new Sender({ url: server.url, token: 'adi_x' }).send([{}], { signal: abort.signal });
  const ended = expect(sent).rejects.toThrow('enough');
  await expect.poll(() => server.requests, { timeout: 30_000 }).toBe(1);
  abort.abort(new Error('enough'));
  await ended;
});

describe('a service that asks for a long pause is asked again after a minute', () => {
  const long = { 'retry-after': '9999999' };
  afterEach(() => void vi.useRealTimers());

  test.each(does)('typescript %s', async (does) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const sent = vi.fn(async () => new Response('', { status: 503, headers: long }));
    const options = { url: 'http://adtally', token: 'adt_x', tries: 2, fetch: sent };
    const asked =
      does === 'sends' ? new Sender(options).send([]) : new Adtally(options).report('campaigns', march);
    const refused = expect(asked).rejects.toBeInstanceOf(AdtallyError);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(sent).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    await refused;
    expect(sent).toHaveBeenCalledTimes(2);
  });

  test.each(does)('python %s', async (does) => {
    server.answers(refuses(503, 'not_ready', long));
    expect(await python({ does })).toMatchObject({ error: 'AdtallyError', pauses: [60] });
  });
});

test('a client that waits for ever is answered', async () => {
  server.answers((response) => void setTimeout(() => ends(row)(response), 50));
  const client = new Adtally({
    url: server.url,
    token: 'adt_x',
    timeoutMs: Number.POSITIVE_INFINITY,
    idleTimeoutMs: 2 ** 31,
  });
  const rows: unknown[] = [];
  for await (const each of client.rows('campaigns', march)) rows.push(each);
  expect(rows).toHaveLength(1);
});
