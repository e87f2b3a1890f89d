import type { IncomingMessage } from 'node:http';
import type { MiddlewareHandler } from 'hono';
import type { HttpEnv } from '../env.ts';
import { Problem } from '../problems.ts';

/**
 * Reads the body of a request as text. A body refused for its size is still read to its end and discarded, so that
 * its caller can read the answer; a caller that waits for `100 Continue` need not send it.
 */
export function requestBody(maxBytes: number): MiddlewareHandler<HttpEnv> {
  const tooLarge = () => new Problem('body_too_large', `the body is larger than ${maxBytes} bytes`);
  return async function requestBodyMiddleware(c, next) {
    const { incoming, outgoing } = c.env;
    if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
    if (incoming.headers.expect !== undefined && incoming.httpVersion !== '1.0') outgoing.writeContinue();
    c.set('body', await read(incoming, maxBytes, tooLarge));
    await next();
  };
}

/** @throws what `tooLarge` returns, or an error when the caller leaves before the end */
function read(incoming: IncomingMessage, maxBytes: number, tooLarge: () => Error): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    incoming.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= maxBytes) pieces.push(piece);
      else reject(tooLarge());
    });
    incoming.once('end', () => resolve(new TextDecoder().decode(Buffer.concat(pieces))));
    incoming.once('error', reject);
    incoming.once('close', () => reject(new Error('the caller went away')));
  });
}
