import type { IncomingMessage, ServerResponse } from 'node:http';
import { smallInputBytes } from '../../ingest/chunks/text-chunks.ts';
import type { Compression } from '../../ingest/input/compression.ts';
import { packingMark } from '../../ingest/input/first-bytes.ts';
import { fileError } from '../../ingest/input/input-error.ts';
import { unpack } from '../../ingest/input/unpack.ts';
import type { Place } from '../http/request/body-room.ts';
import { Problem, retryIn } from '../http/request/problems.ts';

/** What a body may have when it is unpacked. */
const maxBodyBytes = 64 << 20;

const codings: ReadonlyMap<string, Compression> = new Map([
  ['identity', 'none'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['zstd', 'zstd'],
  ['br', 'brotli'],
]);

/**
 * Reads a body and unpacks it as it comes. Of one that is refused the rest is read and dropped, so that its caller can
 * read the answer; a caller that waits for `100 Continue` need not send it.
 * @param place takes every byte before it is held
 * @throws {Problem} for a body that is too large or packed in an unknown way, {InputError} for damaged packing, and an
 * error when the caller leaves before the end
 */
export async function readBody(
  { incoming, outgoing }: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
  place: Place,
): Promise<Buffer> {
  const { headers } = incoming;
  const compression = codings.get((headers['content-encoding'] ?? 'identity').trim().toLowerCase());
  if (!compression) throw unknownCoding('Content-Encoding may be gzip, zstd or br');
  const size = Number(headers['content-length'] ?? 0);
  if (size > maxBodyBytes) throw tooLarge();
  if (/^100-continue$/i.test(headers.expect ?? '') && incoming.httpVersion !== '1.0')
    outgoing.writeContinue();
  try {
    const arriving = incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    const body =
      compression === 'none' && size > 0 && size <= smallInputBytes
        ? await ofSize(size, arriving, place)
        : await held(compression === 'none' ? arriving : unpack(arriving, compression), place);
    if (packingMark(body) !== 'none')
      throw unknownCoding('the body is packed: Content-Encoding has to say how');
    return body;
  } catch (error) {
    // A stream does not flow while somebody waits for it to be readable, and stops when the last who does so leaves,
    // unless it has a listener to its data.
    incoming
      .removeAllListeners('readable')
      .on('data', () => {})
      .resume();
    const left = incoming.destroyed && !incoming.complete;
    throw left || error instanceof Problem ? error : fileError('the body', error);
  }
}

/** In memory of its size from the beginning: joining the pieces takes as much once more. */
async function ofSize(size: number, pieces: AsyncIterable<Buffer>, place: Place): Promise<Buffer> {
  const body = Buffer.allocUnsafeSlow(size);
  let bytes = 0;
  for await (const piece of pieces) {
    place.grow(piece.length);
    bytes += piece.copy(body, bytes);
  }
  return body.subarray(0, bytes);
}

async function held(pieces: AsyncIterable<Buffer>, place: Place): Promise<Buffer> {
  const all: Buffer[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > maxBodyBytes) throw tooLarge();
    place.grow(piece.length);
    all.push(piece);
  }
  return Buffer.concat(all);
}

function tooLarge(): Problem {
  return new Problem('body_too_large', `the body has more than ${maxBodyBytes} bytes when it is unpacked`);
}

/** RFC 9110 §12.5.3 */
function unknownCoding(detail: string): Problem {
  const headers = { 'Accept-Encoding': [...codings.keys()].join(', ') };
  return new Problem('unsupported_media_type', detail, { headers });
}

export function tooManyBodies(): Problem {
  return new Problem('too_many_bodies', undefined, retryIn(1));
}
