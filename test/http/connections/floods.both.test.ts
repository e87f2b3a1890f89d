import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { buildBundle, bundleFile } from '../../../src/http/page/bundle.ts';
import { insertLarge } from '../../support/accounts.ts';
import { fileOf } from '../../support/compiled.ts';
import { thorough } from '../../support/mode.ts';
import { residentMemoryMb } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';
import { type CalledService, content, useCalledService } from '../called-service.ts';

interface Flood {
  readonly connections: number;
  /** What each sends at once, and never reads an answer to. */
  readonly sends: string;
}

/** What others notice of a flood while it lasts. */
interface Harm {
  /** How much more memory the service takes at most. */
  readonly growthMb: number;
  /**
   * The longest answer to another caller: `/healthz` and a small report on new connections, again and again. What the
   * service works meanwhile, in ms of CPU.
   */
  readonly slowestMs: number;
  /** The same in answers of `/healthz` to callers that are alone, which take longer on a slow machine, too. */
  readonly slowestAnswers: number;
}

/**
 * The environment of a service in 512 MiB, as the chart gives it: there Node.js takes half of it for its heap. As many
 * requests of an account as it likes, so that it is not their limit that holds.
 */
const inHalfAGibibyte = { NODE_OPTIONS: '--max-old-space-size=256', RATE_LIMIT_REQUESTS: '10000000' };

/** A flood of another address, for `ms`; its connections are opened before others ask. */
async function harmOf(service: CalledService, { connections, sends }: Flood, ms: number): Promise<Harm> {
  const aloneMs = await answerMs(service);
  const before = residentMemoryMb(service.pid);
  const sockets: Socket[] = [];
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, residentMemoryMb(service.pid));
  }, 20);
  try {
    const until = performance.now() + ms;
    for (let n = 0; n < connections; n++) sockets.push(flooding(service.url, sends));
    // Those that are refused have ended as well.
    await Promise.all(
      sockets.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])),
    );
    let slowestMs = 0;
    do {
      for (const probe of [askHealth, askReport]) {
        const workedBefore = workedMs(service.pid);
        await probe(service);
        slowestMs = Math.max(slowestMs, workedMs(service.pid) - workedBefore);
      }
      await delay(20);
    } while (performance.now() < until);
    return { growthMb: most - before, slowestMs, slowestAnswers: slowestMs / aloneMs };
  } finally {
    clearInterval(watch);
    for (const socket of sockets) socket.destroy();
  }
}

function flooding(url: string, sends: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.66' });
  socket.pause().on('error', () => {
    // The service may hang up on it whenever it likes.
  });
  socket.write(sends);
  return socket;
}

const askHealth = (service: CalledService) => ask(service, 'GET', '/healthz');
const askReport = (service: CalledService) => ask(service, 'POST', '/v1/campaigns');

async function ask({ url, token }: CalledService, method: string, path: string): Promise<void> {
  const asked = request(`${url}${path}`, {
    method,
    agent: new Agent(),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  });
  asked.end(method === 'POST' ? content : undefined);
  const [answer] = await once(asked, 'response');
  await text(answer);
  expect(answer.statusCode).toBe(200);
}

/** What the service works for one `/healthz` on a new connection when nobody else asks, in ms of CPU. */
async function answerMs(service: CalledService): Promise<number> {
  const answers = 100;
  const before = workedMs(service.pid);
  for (let n = 0; n < answers; n++) await askHealth(service);
  return (workedMs(service.pid) - before) / answers;
}

/** CPU time of the thread that answers. */
function workedMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

/** Messages that a caller may send in a row, by what they ask for; all but the second kind need no token. */
function messages(token: string): Readonly<Record<string, string>> {
  const get = (path: string, version = '1.1', extra = '') =>
    `GET ${path} HTTP/${version}\r\nHost: x\r\n${extra}\r\n`;
  const bearer = `Authorization: Bearer ${token}\r\n`;
  const post = (path: string, authorization: string, body = content, extra = '') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\n${authorization}${extra}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const tools = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  const paths = ['/', '/docs', '/app', '/openapi.json', '/metrics', '/healthz', '/readyz', '/nowhere'];
  const mcp = 'Accept: application/json, text/event-stream\r\n';
  return {
    ...Object.fromEntries(paths.map((path) => [path, get(path)])),
    'reports without a token': post('/v1/campaigns', ''),
    'exports without a token': get('/v1/export/campaigns.csv?start_time=2025-01-01&end_time=2025-01-31'),
    'reports with a token': post('/v1/campaigns', bearer),
    'exports with a token': get(
      '/v1/export/campaigns.csv?start_time=2025-01-01&end_time=2025-01-31',
      '1.1',
      bearer,
    ),
    'what changed, with a token': post(
      '/v1/campaigns/changes',
      bearer,
      '{"changed_since":"1970-01-01T00:00:00Z"}',
    ),
    '/mcp without a token': post('/mcp', '', tools, mcp),
    '/mcp with a token': post('/mcp', bearer, tools, mcp),
    'a method that no path takes': get('/docs').replace('GET', 'PUT'),
    'the shortest request': 'GET / HTTP/1.1\r\n\r\n',
    'HTTP/1.0 that stays': get('/docs', '1.0', 'Connection: keep-alive\r\n'),
    'another protocol': get('/docs', '1.1', 'Connection: upgrade\r\nUpgrade: websocket\r\n'),
    'bodies that wait for 100 Continue': post('/v1/campaigns', bearer, content, 'Expect: 100-continue\r\n'),
    'an expectation that nobody knows': get('/docs', '1.1', 'Expect: more\r\n'),
    'bodies in chunks': `POST /v1/campaigns HTTP/1.1\r\nHost: x\r\n${bearer}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`,
    'headers of 15 kB': get('/healthz', '1.1', `X: ${'x'.repeat(15_000)}\r\n`),
    'bodies of 15 kB where none is expected': post('/docs', '', 'x'.repeat(15_000)).replace('POST', 'GET'),
    'bodies that are too large': post('/v1/campaigns', bearer, 'x'.repeat(600_000)),
  };
}

const db = useStore();
const service = useCalledService(db, { ...inHalfAGibibyte, SEND_TIMEOUT_SECONDS: '60' });

/** 2,000 hostile connections may cost others what twice as many honest ones would. */
const mostAnswers = 4_000;

function expectHarmless(
  what: string,
  { growthMb, slowestMs, slowestAnswers }: Harm,
  mostGrowthMb = 100,
): void {
  console.log(
    `${what}: ${growthMb.toFixed()} MB more, others waited ${slowestMs.toFixed()} ms (${slowestAnswers.toFixed()} answers)`,
  );
  expect(growthMb).toBeLessThan(mostGrowthMb);
  expect(slowestAnswers).toBeLessThan(mostAnswers);
}

beforeAll(async () => {
  if (thorough) {
    await insertLarge(db.store, ['large']);
    // As an installed build has it.
    const beside = dirname(fileOf('src/http/page/bundle'));
    writeFileSync(join(beside, bundleFile), JSON.stringify(await buildBundle()));
  }
  // What is made when it is first asked for.
  for (const path of thorough ? ['/docs', '/openapi.json', '/app', '/metrics'] : ['/docs'])
    await (await fetch(`${service.url}${path}`)).text();
});

const kinds = thorough
  ? Object.keys(messages(''))
  : ['/docs', 'reports with a token', 'the shortest request'];
const floodMs = 2_000;

test.each(kinds)(
  '100 connections with 1,200 unread requests each harm nobody: %s',
  async (what) => {
    const message = messages(service.token)[what] ?? '';
    const repeats = Math.min(1_200, Math.ceil(2_000_000 / message.length));
    const sends = message.repeat(repeats);
    expectHarmless(what, await harmOf(service, { connections: 100, sends }, floodMs));
  },
  60_000,
);

test.runIf(thorough)(
  '100 connections with bodies as large as they may be fill the heap and no more',
  async () => {
    const sends = messageWith(service.token, 'x'.repeat(500_000)).repeat(20);
    // The texts that were read are garbage, which V8 leaves until the heap is as large as it may be.
    expectHarmless('large bodies', await harmOf(service, { connections: 100, sends }, 6_000), 256);
  },
  60_000,
);

test.runIf(thorough).each<[string, number, () => string]>([
  ['say nothing', 2_000, () => ''],
  ['send the shortest requests', 2_000, () => 'GET / HTTP/1.1\r\n\r\n'.repeat(2_000)],
  ['have as many requests wait as they may', 2_000, () => mostWaiting(service.token)],
  ['ask for the documents', 2_000, () => 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500)],
  ['never end their headers', 2_000, () => `GET / HTTP/1.1\r\nX: ${'x'.repeat(15_000)}\r\n`],
  ['never end their body', 2_000, () => slowBody(service.token, 16_000)],
  ['never end the largest body', 2_000, () => slowBody(service.token, 512 * 1024)],
  ['never end a file to compare', 2_000, () => slowFile(service.token)],
  ['never end a body that nobody may send', 2_000, () => slowBody('', 50_000_000)],
])(
  'connections that %s shut nobody out: %i of one address',
  async (what, connections, sends) => {
    // Node.js reads up to 64 KiB of a connection before it can be told to wait, and keeps the texts that it makes of it.
    const mostGrowthMb = (connections * 2 * 64) / 1024;
    expectHarmless(what, await harmOf(service, { connections, sends: sends() }, 4_000), mostGrowthMb);
  },
  60_000,
);

/** The first is a report that nobody reads, the others have the longest headers that there may be. */
function mostWaiting(token: string): string {
  const [report = ''] = [messages(token)['reports with a token']];
  return report + `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(15_000)}\r\n\r\n`.repeat(3);
}

/** Bodies of files to compare, none of which ends. */
const slowFile = (token: string): string =>
  slowBody(token, 8 << 20)
    .replace('/v1/campaigns', '/v1/campaigns/reconcile')
    .replace('application/json', 'text/csv');

function messageWith(token: string, body: string): string {
  return `POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function slowBody(token: string, bytes: number): string {
  const head = `POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
  return head + content.padEnd(Math.min(bytes - 1, 600_000));
}
