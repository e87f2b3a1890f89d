import { malformed } from './malformed.ts';

export const conversationKinds = ['alone', 'old', 'broken', 'pipelined'] as const;

/** What is sent over one connection. */
export interface Conversation {
  readonly kind: (typeof conversationKinds)[number];
  readonly requests: number;
  /** Sent one after another, each on its own. */
  readonly pieces: readonly Buffer[];
  /** How the caller goes on then; to stay is to wait for the answer. */
  readonly ending: 'stays' | 'ends' | 'leaves' | 'resets';
  /** Statuses that the answers may have, by their request id, in order; none: nothing is known of them. */
  readonly expected: ReadonlyMap<string, readonly number[]>;
  /** Whether an answer is owed to each of them. */
  readonly all: boolean;
}

const range = '{"start_time":"2026-03-01","end_time":"2026-03-31"}';
const json = 'Content-Type: application/json';

/**
 * One malformed request by itself, one over HTTP/1.0, one that breaks off or comes in bits, or several that do not
 * wait for the answers; of each a part, so that about half of all requests come alone.
 * @param n numbers it
 */
export function conversation(random: () => number, token: string, n: number): Conversation {
  const kind = random();
  const none = { expected: new Map(), all: false };
  if (kind < 0.6) {
    return { kind: 'alone', requests: 1, pieces: [malformed(random, token)], ending: 'stays', ...none };
  }
  if (kind < 0.77) {
    return { kind: 'old', requests: 1, pieces: [old(random, token)], ending: 'stays', ...none };
  }
  return kind < 0.94 ? broken(random, token) : pipelined(random, token, `fuzz-${n}`);
}

/** Every second one is right but for its version. */
function old(random: () => number, token: string): Buffer {
  if (random() < 0.5) return malformed(random, token, 'HTTP/1.0');
  const kept = ['', 'Connection: keep-alive', 'Connection: close', 'TE: chunked', 'Connection: Upgrade'];
  return request({
    version: 'HTTP/1.0',
    headers: [`Authorization: Bearer ${token}`, json, kept[Math.floor(random() * kept.length)] ?? ''],
    body: range,
  });
}

function broken(random: () => number, token: string): Conversation {
  const good = request({ headers: [`Authorization: Bearer ${token}`, json], body: range });
  const whole = random() < 0.7 ? good : malformed(random, token);
  const sent = random() < 0.8 ? whole.subarray(0, Math.floor(random() * whole.length)) : whole;
  const ending = (['ends', 'leaves', 'resets', 'stays'] as const)[Math.floor(random() * 4)] ?? 'ends';
  const pieces = random() < 0.5 ? [sent] : inBits(random, sent);
  return { kind: 'broken', requests: 1, pieces, ending, expected: new Map(), all: false };
}

/** Bits of up to 120 bytes; longer ones of a large body, which would otherwise take longer to send than a request may. */
function inBits(random: () => number, bytes: Buffer): Buffer[] {
  const longest = Math.max(120, bytes.length / 100);
  const bits: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const next = at + 1 + Math.floor(random() * (random() < 0.2 ? 3 : longest));
    bits.push(bytes.subarray(at, next));
    at = next;
  }
  return bits;
}

/** Two to four that are understood, as many as may wait, with the answers that they must get in this order; after some comes rubbish. */
function pipelined(random: () => number, token: string, id: string): Conversation {
  const own = `Authorization: Bearer ${token}`;
  const kinds: readonly (readonly [Request, readonly number[]])[] = [
    // Too many at a time are refused.
    [{ headers: [own, json], body: range }, [200, 429]],
    [{ headers: [own, json], body: range, path: '/v1/ad_units/breakdowns/date' }, [200, 429]],
    [{ headers: [own, json, 'Accept: text/csv', 'Accept-Encoding: gzip'], body: range }, [200, 429]],
    [{ headers: [own, json, 'Transfer-Encoding: chunked'], chunked: true, body: range }, [200, 429]],
    [{ headers: [own, json, 'Expect: 100-continue'], body: range }, [200, 429]],
    [{ headers: [own, json], body: '{"start_time":"2026-03-01"}' }, [400]],
    [{ headers: [json], body: range }, [401]],
    [{ headers: [own], body: range }, [415]],
    [{ headers: [own, json], body: `{"x":"${'x'.repeat(600_000)}"}` }, [413]],
    [{ method: 'GET', headers: [own] }, [405]],
    [{ headers: [own, json], body: range, path: '/v1/nothing' }, [404]],
    [{ method: 'GET', headers: [], path: '/healthz' }, [200]],
  ];
  const rubbish = random() < 0.3;
  const count = 2 + Math.floor(random() * (rubbish ? 2 : 3));
  const expected = new Map<string, readonly number[]>();
  const messages: Buffer[] = [];
  for (let k = 0; k < count; k++) {
    const [kind, statuses] = kinds[Math.floor(random() * kinds.length)] ?? kinds[0] ?? [];
    if (!kind || !statuses) continue;
    const last = k === count - 1 && !rubbish;
    const headers = [...kind.headers, `X-Request-Id: ${id}-${k}`, ...(last ? ['Connection: close'] : [])];
    messages.push(request({ ...kind, headers }));
    expected.set(`${id}-${k}`, statuses);
  }
  if (rubbish) messages.push(malformed(random, token));
  const bytes = Buffer.concat(messages);
  const pieces = random() < 0.5 ? [bytes] : inBits(random, bytes);
  return { kind: 'pipelined', requests: messages.length, pieces, ending: 'stays', expected, all: !rubbish };
}

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly version?: string;
  readonly headers: readonly string[];
  readonly body?: string;
  readonly chunked?: boolean;
}

function request(asked: Request): Buffer {
  const {
    method = 'POST',
    path = '/v1/campaigns',
    version = 'HTTP/1.1',
    headers,
    body = '',
    chunked,
  } = asked;
  const lines = [`${method} ${path} ${version}`, 'Host: localhost', ...headers.filter(Boolean)];
  if (!chunked && method === 'POST') lines.push(`Content-Length: ${body.length}`);
  const sent = chunked
    ? `5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`
    : body;
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${sent}`);
}
