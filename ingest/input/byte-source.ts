import { constants, createReadStream, openSync, readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { addAbortSignal, type Readable } from 'node:stream';
import type { Compression } from './file-format.ts';
import { compressionOf, endsLinesWithCr, packingMark, refuseBinary, textEncodingOf } from './first-bytes.ts';
import { fileError, InputError } from './input-error.ts';
import { crToLf, toUtf8 } from './text.ts';
import { unpack } from './unpack.ts';

/** A stream of bytes that are written where the caller wants them. */
export interface ByteSource {
  /** How many bytes there are, if that is known before they are read. */
  readonly size?: number;
  /**
   * Fills `target` with the bytes from `start` on, once more and also after it is closed; returns how many there were.
   * Only a file that holds its text as it is can do so.
   */
  readonly readAgain?: (target: Buffer, start: number) => Promise<number>;
  /** All of it, where it has been read at once. */
  readonly whole?: Buffer;
  /** Fills `target` from the start; returns the number of bytes written, 0 at the end. */
  read(target: Buffer): Promise<number>;
  close(): Promise<void>;
}

/** Larger reads are no faster. */
const maxReadBytes = 8 << 20;
const pieceBytes = 256 << 10;
/** What is looked at to see what a file is. The first line must end within it for CR line ends to be seen. */
const headBytes = 64 << 10;

/**
 * The text of a file or of standard input (`-`): unpacked, in UTF-8 without a byte order mark, with lines that end
 * with LF or CRLF. What a file is follows from its first 64 KiB, so that the same file always gives the same bytes.
 * UTF-16 is converted; so are CR line ends (those of `CSV (Macintosh)`) if the first line ends with one.
 * Everything else is passed on as it is, and a plain file is read directly into the target.
 * @param compression by the file's name; see {@link compressionOf} for what counts
 * @param onBytes called with the number of bytes read from the file itself
 * @param signal ends the reading, also where it waits for more
 * @throws {InputError} that names the file, here or from `read`: it cannot be read, holds no text, or its packed data
 * or its UTF-16 is damaged or truncated; then only when that point is reached
 */
export async function openBytes(
  file: string,
  compression: Compression,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<ByteSource> {
  const named = (cause: unknown) => {
    throw fileError(file, cause);
  };
  const raw = await openFile(file, onBytes, signal).catch(named);
  let text: ByteSource | undefined;
  try {
    text = await openText(raw, compression);
  } catch (cause) {
    await raw.close();
    return named(cause);
  }
  const { read, readAgain, ...rest } = text;
  return {
    ...rest,
    read: (target) => read(target).catch(named),
    ...(readAgain && { readAgain: (target, start) => readAgain(target, start).catch(named) }),
  };
}

/** The same as pieces. @see openBytes */
export async function* readInput(
  file: string,
  compression: Compression,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  const source = await openBytes(file, compression, onBytes, signal);
  try {
    yield* piecesOf(source);
  } finally {
    await source.close();
  }
}

async function openText(raw: ByteSource, byName: Compression): Promise<ByteSource> {
  const packed = await peek(raw);
  const compression = compressionOf(packed.head, byName);
  let text = packed;
  if (compression !== 'none') {
    text = await peek(byteSourceOf(unpack(piecesOf(packed), compression), packed));
    if (packingMark(text.head) !== 'none') {
      throw new InputError(`the ${compression} data holds packed data again; unpack it first`);
    }
  }
  refuseBinary(text.head);
  const { name, bomBytes } = textEncodingOf(text.head);
  text.skip(bomBytes);
  if (name !== 'utf-8') text = await peek(byteSourceOf(toUtf8(piecesOf(text), name), text));
  if (endsLinesWithCr(text.head)) return byteSourceOf(crToLf(piecesOf(text)), text);
  const { size, readAgain, read, close } = text;
  if (size === undefined || !readAgain) return { read, close };
  return {
    size: size - bomBytes,
    readAgain: (target, start) => readAgain(target, start + bomBytes),
    ...{ read, close },
  };
}

async function openFile(
  file: string,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<ByteSource> {
  // Use stat rather than open: opening and closing a pipe would break its writer.
  const found = file === '-' ? undefined : statSync(file);
  if (!found?.isFile()) {
    const stream = found ? openStream(file, found.isFIFO()) : process.stdin;
    if (signal) addAbortSignal(signal, stream);
    const { read } = byteSourceOf(stream);
    return {
      read: async (target) => {
        const bytes = await read(target);
        if (bytes > 0) onBytes(bytes);
        return bytes;
      },
      // Ends a read that waits, too.
      close: async () => void stream.destroy(),
    };
  }
  const readAgain = (target: Buffer, start: number) => readAt(file, target, start);
  if (found.size <= headBytes) {
    // To wait for each of several calls takes longer than what they do.
    const whole = readFileSync(file);
    onBytes(whole.length);
    return { whole, size: whole.length, readAgain, read: () => Promise.resolve(0), close: async () => {} };
  }
  const handle = await open(file);
  return {
    size: found.size,
    readAgain,
    read: async (target) => {
      const { bytesRead } = await handle.read(target, 0, Math.min(target.length, maxReadBytes));
      if (bytesRead > 0) onBytes(bytesRead);
      return bytesRead;
    },
    close: () => handle.close(),
  };
}

async function readAt(file: string, target: Buffer, start: number): Promise<number> {
  const handle = await open(file);
  try {
    let length = 0;
    for (let bytes = -1; bytes !== 0 && length < target.length; length += bytes) {
      bytes = (await handle.read(target, length, target.length - length, start + length)).bytesRead;
    }
    return length;
  } finally {
    await handle.close();
  }
}

/** A named pipe is read as a socket: reading it as a file would block a thread, and the end of the process. */
function openStream(file: string, isPipe: boolean): Readable {
  if (!isPipe) return createReadStream(file);
  const { O_RDONLY, O_NONBLOCK } = constants;
  return new Socket({ fd: openSync(file, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
}

/** A source of which the first bytes are known. */
interface PeekedSource extends ByteSource {
  /** As many bytes as `headBytes`, or all there are. */
  readonly head: Buffer;
  /** Leaves out the first bytes, before anything is read. */
  skip(bytes: number): void;
}

async function peek(source: ByteSource): Promise<PeekedSource> {
  const head = source.whole ?? (await headOf(source));
  const ended = source.whole !== undefined || head.length < headBytes;
  let unread = head;
  return {
    ...source,
    head,
    skip: (bytes) => {
      unread = unread.subarray(bytes);
    },
    read: (target) => {
      if (unread.length === 0) return ended ? Promise.resolve(0) : source.read(target);
      const bytes = unread.copy(target);
      unread = unread.subarray(bytes);
      return Promise.resolve(bytes);
    },
  };
}

async function headOf(source: ByteSource): Promise<Buffer> {
  const head = Buffer.allocUnsafeSlow(headBytes);
  let length = 0;
  for (let bytes = -1; bytes !== 0 && length < head.length; length += bytes) {
    bytes = await source.read(head.subarray(length));
  }
  return head.subarray(0, length);
}

/** @param origin what the pieces are made from; closed with the source */
function byteSourceOf(pieces: AsyncIterable<Buffer>, origin?: ByteSource): ByteSource {
  const iterator = pieces[Symbol.asyncIterator]();
  let unread: Buffer = Buffer.alloc(0);
  return {
    read: async (target) => {
      while (unread.length === 0) {
        const { value, done } = await iterator.next();
        if (done) return 0;
        unread = value;
      }
      const length = unread.copy(target);
      unread = unread.subarray(length);
      return length;
    },
    close: async () => {
      await origin?.close();
      await iterator.return?.();
    },
  };
}

async function* piecesOf(source: ByteSource): AsyncGenerator<Buffer> {
  for (;;) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, (source.size ?? pieceBytes) + 1));
    const bytes = await source.read(piece);
    if (bytes === 0) return;
    yield piece.subarray(0, bytes);
  }
}
