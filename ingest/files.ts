import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, pipeline, type Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { glob, isDynamicPattern } from 'tinyglobby';
import { type Compression, InputError } from './formats.ts';

/**
 * The files that arguments stand for: a file itself, `-` for standard input, every file of a folder, every
 * match of a pattern; each once, in order.
 * @throws {InputError} for an argument that stands for nothing
 */
export async function expandFiles(args: readonly string[]): Promise<string[]> {
  const files = await Promise.all(args.map(expand));
  return [...new Set(files.flat())];
}

async function expand(arg: string): Promise<string[]> {
  if (arg === '-') return [arg];
  const found = await stat(arg).catch((cause: NodeJS.ErrnoException) => {
    if (isDynamicPattern(arg)) return undefined;
    throw new InputError(`${arg}: ${readable(cause)}`, { cause });
  });
  if (found?.isFile() || found?.isFIFO()) return [arg];
  const files = found
    ? (await glob('*', { cwd: arg, expandDirectories: false })).map((name) => join(arg, name))
    : await glob(arg, { expandDirectories: false });
  if (files.length === 0) throw new InputError(`${arg}: no file there`);
  return files.sort();
}

/**
 * The bytes of a file, unpacked.
 * @param onBytes told how many bytes of the file itself were read
 * @throws {InputError} when the file cannot be read, or its packed data is damaged or cut off, at that point
 */
export async function* readInput(
  file: string,
  compression: Compression,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const raw: Readable = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1 << 20 });
  const counted = new PassThrough({
    transform(data: Buffer, _, done) {
      onBytes(data.length);
      done(null, data);
    },
  });
  const unpacked = unpackers[compression]();
  try {
    yield* pipeline(raw, counted, unpacked, () => {
      // A failure destroys `unpacked` with it, which is where it is seen.
    });
  } catch (cause) {
    throw cause instanceof Error ? new InputError(`${file}: ${readable(cause)}`, { cause }) : cause;
  }
}

const unpackers: Readonly<Record<Compression, () => Transform>> = {
  none: () => new PassThrough(),
  gzip: () => createGunzip({ chunkSize: 1 << 20 }),
  brotli: () => createBrotliDecompress({ chunkSize: 1 << 20 }),
  zstd: unpackZstd,
};

function unpackZstd(): Transform {
  const zstd = new Decompress();
  return new Transform({
    transform(data: Buffer, _, done) {
      zstd.ondata = (unpacked) => this.push(unpacked);
      try {
        // Small steps bound what one call can unpack to.
        for (let at = 0; at < data.length; at += 1 << 16) zstd.push(data.subarray(at, at + (1 << 16)));
        done();
      } catch (cause) {
        done(new InputError('the zstd data is damaged', { cause }));
      }
    },
    flush(done) {
      try {
        zstd.push(new Uint8Array(), true);
        done();
      } catch (cause) {
        done(new InputError('the zstd data ends too early: the file is truncated', { cause }));
      }
    },
  });
}

/** What went wrong with a file, in words. */
function readable(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
      return 'no permission to read it';
    case 'EISDIR':
      return 'it is a folder';
    case 'Z_BUF_ERROR':
      return 'the gzip data ends too early: the file is truncated';
    case 'Z_DATA_ERROR':
      return 'the gzip data is damaged';
    default:
      return cause.message;
  }
}
