import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Side } from './measure.ts';

/** A POST request. */
export interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Transfer {
  readonly firstByteSeconds: number;
  readonly seconds: number;
  /** The size of the body on the wire. */
  readonly bytes: number;
}

/**
 * Reads a response to its last byte with curl, which takes less CPU than JavaScript would. The start of the curl
 * process is not counted. curl decompresses the body.
 * @throws when the status is not 200 or the response is truncated
 */
export async function transfer({ url, headers, body }: HttpRequest): Promise<Transfer> {
  const curl = spawn(
    'curl',
    [
      '--silent',
      '--show-error',
      '--fail',
      '--compressed',
      // A proxy of the bench has a certificate that nobody signed.
      '--insecure',
      '--max-time',
      '300',
      '--output',
      '/dev/null',
      '--write-out',
      '%{time_starttransfer} %{time_total} %{size_download}',
      ...Object.entries({ 'accept-encoding': 'identity', expect: '', ...headers }).flatMap(
        ([name, value]) => ['--header', `${name}: ${value}`],
      ),
      '--data-binary',
      '@-',
      url,
    ],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  curl.stdin.on('error', () => undefined).end(body);
  const ended = once(curl, 'close');
  const [output, errors] = await Promise.all([text(curl.stdout), text(curl.stderr)]);
  const [code] = await ended;
  if (code !== 0) throw new Error(`curl, exit code ${code}: ${errors.trim()} (${url.slice(0, 200)})`);
  const [firstByteSeconds = Number.NaN, seconds = Number.NaN, bytes = Number.NaN] = output
    .split(' ')
    .map(Number);
  return { firstByteSeconds, seconds, bytes };
}

/** A side that times one transfer. */
export const transferSide = (name: string, request: HttpRequest | (() => HttpRequest)): Side => ({
  name,
  run: async () => (await transfer(typeof request === 'function' ? request() : request)).seconds,
});

/** The text of a response, for comparing. @throws when the status is not 200 */
export async function read({ url, headers, body }: HttpRequest): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'accept-encoding': 'identity', ...headers },
    body,
  });
  const answer = await response.text();
  if (response.status !== 200)
    throw new Error(`${url.slice(0, 200)}: ${response.status} ${answer.slice(0, 500)}`);
  return answer;
}

export interface CallOptions {
  readonly callers: number;
  readonly seconds: number;
  /** Ends the calls early. */
  readonly signal?: AbortSignal;
  /** Called with each answer's request and milliseconds. */
  readonly onAnswer?: (request: HttpRequest, ms: number) => void;
}

/** One request, or several that are sent one after the other and timed together; a function makes each repetition's. */
export type Repeated = HttpRequest | readonly HttpRequest[] | (() => HttpRequest);

/**
 * Several callers that each repeat requests as fast as they are answered, on a kept connection.
 * @returns the milliseconds of each repetition
 */
export async function callRepeatedly(
  requests: Repeated,
  { callers, seconds, signal, onAnswer }: CallOptions,
): Promise<number[]> {
  const sequenceOf = () => (typeof requests === 'function' ? [requests()] : [requests].flat());
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const times: number[] = [];
  const until = performance.now() + seconds * 1000;
  const caller = async () => {
    while (performance.now() < until && !signal?.aborted) {
      const sequence = sequenceOf();
      const startedAt = performance.now();
      for (const request of sequence) await requestOnce(request, agent);
      const ms = performance.now() - startedAt;
      times.push(ms);
      const [request] = sequence;
      if (request) onAnswer?.(request, ms);
    }
  };
  try {
    await Promise.all(Array.from({ length: callers }, caller));
  } finally {
    agent.destroy();
  }
  return times;
}

/** A side that counts the repetitions in a second. */
export const rateSide = (name: string, requests: Repeated, options: CallOptions): Side => ({
  name,
  run: async () => {
    const startedAt = performance.now();
    const times = await callRepeatedly(requests, options);
    return times.length / ((performance.now() - startedAt) / 1000);
  },
});

/**
 * The same with wrk, because a client in JavaScript takes more CPU than an answer from memory. A request without a body is
 * a GET.
 * @param script where to write the request for wrk
 */
export const wrkSide = (
  name: string,
  { url, headers, body }: HttpRequest,
  { callers, seconds, script }: CallOptions & { readonly script: string },
): Side => ({
  name,
  prepare: async () => {
    const quoted = JSON.stringify;
    const lines = [
      `wrk.method = ${quoted(body === '' ? 'GET' : 'POST')}`,
      ...(body === '' ? [] : [`wrk.body = ${quoted(body)}`]),
      ...Object.entries(headers).map(
        ([header, value]) => `wrk.headers[${quoted(header)}] = ${quoted(value)}`,
      ),
    ];
    await writeFile(script, lines.join('\n'));
  },
  run: async () => {
    const duration = `${Math.max(1, Math.round(seconds))}s`;
    const args = ['--threads', '1', '--connections', `${callers}`, '--duration', duration];
    const { stdout } = await promisify(execFile)('wrk', [...args, '--script', script, url]);
    const [, rate] = /Requests\/sec: +([\d.]+)/.exec(stdout) ?? [];
    if (rate === undefined || stdout.includes('Non-2xx')) throw new Error(`${name}: ${stdout}`);
    return Number(rate);
  },
});

function requestOnce({ url, headers, body }: HttpRequest, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } },
      (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`${url.slice(0, 200)}: ${answer.statusCode}`));
        answer.on('error', reject).on('end', resolve).resume();
      },
    );
    sent.on('error', reject).end(body);
  });
}
