import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { endedBy } from '../../../clickhouse/ended-by.ts';
import { certificateRefused } from '../../../clickhouse/retry.ts';

/** Requests at a time; the others wait. */
const connections = 64;
/** A connection on which nothing comes for so long is given up. */
const silentAfterMs = 30_000;

const settings = { keepAlive: true, maxSockets: connections };
const agents = { http: new HttpAgent(settings), https: new HttpsAgent(settings) };

/** What went wrong on the way to a store or back: another attempt may not meet it. */
export class ConnectionFailed extends Error {}

/**
 * Sends a request and returns the answer when it begins. No redirect is followed, and nothing is unpacked: `fetch` unpacks
 * what an object says it is packed with, behind which no range fits.
 * @throws {ConnectionFailed}, or the reason of the signal
 */
export function send(
  method: 'GET' | 'HEAD',
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const https = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const request = (https ? httpsRequest : httpRequest)(
      url,
      {
        method,
        headers,
        agent: https ? agents.https : agents.http,
        timeout: silentAfterMs,
      },
      resolve,
    );
    if (signal) endedBy(signal, request);
    request.on('timeout', () =>
      request.destroy(new ConnectionFailed(`nothing came for ${silentAfterMs / 1000} s`)),
    );
    request.on('error', (error) => reject(failureOf(error, signal)));
    request.end();
  });
}

/** What an error of a request, or of reading its answer, is. */
function failureOf(error: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason;
  if (!(error instanceof Error) || error instanceof ConnectionFailed) return error;
  const code = 'code' in error ? ` (${error.code})` : '';
  return (
    certificateRefused(error, 'the storage') ??
    new ConnectionFailed(`the connection failed${code}`, { cause: error })
  );
}

/** What an answer has, as it comes. @throws {ConnectionFailed}, or the reason of the signal */
export async function* bodyOf(answer: IncomingMessage, signal?: AbortSignal): AsyncGenerator<Buffer> {
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) yield piece;
  } catch (error) {
    throw failureOf(error, signal);
  }
}

/** An answer up to its end. @param most only so many bytes of it are kept */
export async function textOfBody(
  answer: IncomingMessage,
  signal?: AbortSignal,
  most = Number.POSITIVE_INFINITY,
): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of bodyOf(answer, signal)) {
    if (length < most) pieces.push(piece);
    length += piece.length;
  }
  return Buffer.concat(pieces).toString();
}
