import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { Readable } from 'node:stream';

interface Asking {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/**
 * As `fetch`, but it waits for an answer until its signal is aborted: that of Node gives up after 300 s, and a report may
 * take longer. It follows no redirects.
 */
export async function patientFetch(
  url: string,
  { method, headers = {}, body, signal }: Asking,
): Promise<Response> {
  const { request } = url.startsWith('https:') ? https : http;
  const asked = request(url, { method, headers, signal, agent: false });
  // Whoever waits for the answer, or reads it, is told.
  asked.on('error', () => {});
  // As fetch does: load balancers drop connections on which nothing is said.
  asked.setSocketKeepAlive(true, 60_000);
  asked.end(body);
  const [answer] = await once(asked, 'response').catch((error: unknown) => {
    signal.throwIfAborted();
    // One for each address of a name, and no message.
    throw error instanceof AggregateError ? error.errors[0] : error;
  });
  return new Response(Readable.toWeb(answer) as ReadableStream, {
    status: answer.statusCode,
    headers: Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
  });
}
