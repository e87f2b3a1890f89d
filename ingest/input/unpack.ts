import { pipeline, Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import type { Compression } from './compression.ts';
import { unpackZstd } from './zstd.ts';

const chunkSize = 1 << 20;

/**
 * Unpacks data as it arrives. @throws {Error} for data that is damaged or truncated, and for bytes behind its end;
 * what came before has been passed on then
 */
export function unpack(
  packed: AsyncIterable<Buffer>,
  compression: Exclude<Compression, 'none'>,
): AsyncGenerator<Buffer> {
  return compression === 'zstd' ? unpackZstd(packed) : unpackWithZlib(packed, compression);
}

async function* unpackWithZlib(
  packed: AsyncIterable<Buffer>,
  compression: 'gzip' | 'brotli',
): AsyncGenerator<Buffer> {
  let packedBytes = 0;
  const counted = async function* () {
    for await (const piece of packed) {
      packedBytes += piece.length;
      yield piece;
    }
  };
  const unpacker =
    compression === 'gzip' ? createGunzip({ chunkSize }) : createBrotliDecompress({ chunkSize });
  yield* pipeline(Readable.from(counted(), { objectMode: false }), unpacker, () => {
    // A failure destroys `unpacker` too, which is where it is seen.
  });
  // Node's unpackers stop silently where the data ends, and leave out what follows.
  if (unpacker.bytesWritten < packedBytes) {
    throw new Error(
      'more bytes follow the end of the packed data, which would be left out: unpack the file before it is loaded',
    );
  }
}
