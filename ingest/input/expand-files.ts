import { constants, createReadStream, openSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { addAbortSignal, Duplex, PassThrough, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { glob, isDynamicPattern } from 'tinyglobby';
import { type Compression, InputError } from './file-format.ts';
import { unpackZstd } from './zstd.ts';

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
  const files = found ? await filesIn(arg) : await glob(arg, { expandDirectories: false });
  if (files.length === 0) throw new InputError(`${arg}: no file there`);
  return files.sort();
}

/** Every file of a folder but hidden ones. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: NodeJS.ErrnoException) => {
    throw new InputError(`${folder}: ${readable(cause)}`, { cause });
  });
  return entries
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name));
}

/**
 * The bytes of a file, unpacked.
 * @param onBytes told how many bytes of the file itself were read
 * @param signal ends the reading, also where it waits for more
 * @throws {InputError} when the file cannot be read, or its packed data is damaged or cut off, at that point
 */
export async function* readInput(
  file: string,
  compression: Compression,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  let packed = 0;
  const counted = new PassThrough({
    transform(data: Buffer, _, done) {
      packed += data.length;
      onBytes(data.length);
      done(null, data);
    },
  });
  const unpacked = unpackers[compression]();
  try {
    const raw = file === '-' ? process.stdin : await openStream(file);
    if (signal) addAbortSignal(signal, raw);
    yield* pipeline(raw, counted, unpacked, () => {
      // A failure destroys `unpacked` with it, which is where it is seen.
    });
    // Node's unpackers end where the data does, and leave out in silence what follows.
    if (hasTaken(unpacked) && unpacked.bytesWritten < packed) throw new Error(trailing);
  } catch (cause) {
    throw cause instanceof Error ? new InputError(`${file}: ${readable(cause)}`, { cause }) : cause;
  }
}

/** A named pipe is waited for as a socket is: reading it as a file would hold a thread, and the end of the process. */
async function openStream(file: string): Promise<Readable> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFIFO()) return createReadStream(file, { highWaterMark: 1 << 20 });
  const { O_RDONLY, O_NONBLOCK } = constants;
  return new Socket({ fd: openSync(file, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
}

const trailing =
  'more bytes follow the end of the packed data, which would be left out: unpack the file before it is loaded';

function hasTaken(unpacker: object): unpacker is { readonly bytesWritten: number } {
  return 'bytesWritten' in unpacker;
}

const unpackers: Readonly<Record<Compression, () => Duplex>> = {
  none: () => new PassThrough(),
  gzip: () => createGunzip({ chunkSize: 1 << 20 }),
  brotli: () => createBrotliDecompress({ chunkSize: 1 << 20 }),
  zstd: () => Duplex.from(unpackZstd),
};

/** What went wrong with a file, in words. */
export function readable(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EACCES':
      return 'no permission to read it';
    case 'EISDIR':
      return 'it is a folder';
    case 'Z_BUF_ERROR':
      return 'the packed data ends too early: the file is truncated';
    case 'Z_DATA_ERROR':
      return 'the gzip data is damaged';
    case 'ENOTDIR':
      return 'it is neither a file nor a folder';
    default:
      // Brotli's codes begin so, whatever is wrong.
      return cause.code?.startsWith('ERR__ERROR_') ? 'the brotli data is damaged' : cause.message;
  }
}
