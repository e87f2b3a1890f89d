import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** A POST that can be sent by either client. */
export interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Transfer {
  readonly firstByteSeconds: number;
  readonly seconds: number;
  /** Of the body as it came over the wire. */
  readonly bytes: number;
}

/**
 * Reads an answer to its last byte with curl, which costs the cores less than reading in JavaScript would, in a
 * process of its own; its start is not counted. An encoded body is decoded by it.
 * @throws when the answer is not 200 or breaks off
 */
export async function transfer({ url, headers, body }: HttpRequest): Promise<Transfer> {
  const curl = spawn(
    'curl',
    [
      '--silent',
      '--show-error',
      '--fail',
      '--compressed',
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
  const [said, complaint] = await Promise.all([text(curl.stdout), text(curl.stderr)]);
  const [code] = await ended;
  if (code !== 0) throw new Error(`curl, exit code ${code}: ${complaint.trim()} (${url.slice(0, 200)})`);
  const [firstByteSeconds = Number.NaN, seconds = Number.NaN, bytes = Number.NaN] = said
    .split(' ')
    .map(Number);
  return { firstByteSeconds, seconds, bytes };
}

/** The text of an answer, for comparing. @throws when it is not 200 */
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

export interface LoadOptions {
  readonly callers: number;
  /** Ends after so long … */
  readonly seconds: number;
  /** … or when it aborts. */
  readonly signal?: AbortSignal;
}

/**
 * Callers that ask again as soon as they were answered, each on a connection it keeps; milliseconds of each.
 * @param sent one request, or several that are one question, one after the other
 */
export async function load(
  sent: HttpRequest | readonly HttpRequest[],
  { callers, seconds, signal }: LoadOptions,
): Promise<number[]> {
  const question = [sent].flat();
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const times: number[] = [];
  const until = performance.now() + seconds * 1000;
  const caller = async () => {
    while (performance.now() < until && !signal?.aborted) {
      const startedAt = performance.now();
      for (const request of question) await once200(request, agent);
      times.push(performance.now() - startedAt);
    }
  };
  try {
    await Promise.all(Array.from({ length: callers }, caller));
  } finally {
    agent.destroy();
  }
  return times;
}

function once200({ url, headers, body }: HttpRequest, agent: Agent): Promise<void> {
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
