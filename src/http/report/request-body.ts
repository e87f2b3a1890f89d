import type { IncomingMessage } from 'node:http';
import type { MiddlewareHandler } from 'hono';
import { textOf } from '../../report/invalid-request.ts';
import { type Place, Room } from '../request/body-room.ts';
import type { HttpEnv } from '../request/env.ts';
import { Problem, retryIn } from '../request/problems.ts';

/** Refuses a body of another media type, before it is read. */
export const requireJson: MiddlewareHandler<HttpEnv> = (c, next) => {
  const mediaType = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (mediaType !== 'application/json') {
    throw new Problem('unsupported_media_type');
  }
  return next();
};

/** A body of two dates and a few fields, as nearly all are. */
const smallBytes = 16 * 1024;
/** What larger ones have beyond that until they are answered, together; of one account half of it. */
const largeBytesAtOnce = 16 << 20;

/**
 * Reads the body of a request as text. A body refused for its size is still read to its end and discarded, so that
 * its caller can read the answer; a caller that waits for `100 Continue` need not send it.
 */
export function requestBody(maxBytes: number): MiddlewareHandler<HttpEnv> {
  const room = roomForBodies(largeBytesAtOnce);
  return async function requestBodyMiddleware(c, next) {
    const place = room.enter(c.get('account'));
    try {
      c.set('body', textOf(await readWhole(c.env, place, maxBytes)));
      // Whoever waits for a place among the reports holds its body meanwhile.
      return await next();
    } finally {
      place.leave();
    }
  };
}

/** What large bodies have together; those of one account half of it. */
export const roomForBodies = (maxBytes: number): Room =>
  new Room({
    maxBytes,
    full: () =>
      new Problem('too_many_reports', 'too many large bodies are held; try again in 1 s', retryIn(1)),
  });

/**
 * The bytes of a body.
 * @throws {Problem} for one that is too large or packed, and where there is no room for it
 */
export async function readWhole(
  { incoming, outgoing }: HttpEnv['Bindings'],
  place: Place,
  maxBytes: number,
): Promise<Buffer> {
  const tooLarge = () => new Problem('body_too_large', `the body is larger than ${maxBytes} bytes`);
  if ((incoming.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') throw packed();
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const waits = /^100-continue$/i.test(incoming.headers.expect ?? '') && incoming.httpVersion !== '1.0';
  if (waits) outgoing.writeContinue();
  return read(incoming, place, maxBytes, tooLarge);
}

/** RFC 9110 §12.5.3 */
export function packed(): Problem {
  return new Problem('unsupported_media_type', 'the body must not be compressed', {
    headers: { 'Accept-Encoding': 'identity' },
  });
}

/** @throws what `tooLarge` returns, a problem where there is no room, or an error when the caller leaves before the end */
function read(
  incoming: IncomingMessage,
  place: Place,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let pieces: Buffer[] = [];
    let bytes = 0;
    let refused = false;
    const refuse = (error: unknown) => {
      refused = true;
      pieces = [];
      reject(error);
    };
    incoming.on('data', (piece: Buffer) => {
      if (refused) return;
      const large = Math.max(smallBytes, bytes);
      bytes += piece.length;
      try {
        if (bytes > maxBytes) throw tooLarge();
        if (bytes > large) place.grow(bytes - large);
        pieces.push(piece);
      } catch (error) {
        refuse(error);
      }
    });
    incoming.once('end', () => resolve(Buffer.concat(pieces)));
    incoming.once('error', reject);
    // Making an error takes longer than reading the body, so it is made only where it is needed.
    incoming.once('close', () => {
      if (!incoming.readableEnded) reject(new Error('the caller went away'));
    });
  });
}
