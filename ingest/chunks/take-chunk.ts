import type { Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ByteSource } from '../input/byte-source.ts';
import { InputChanged } from '../input/input-error.ts';
import { type Counted, isLineEnd } from './count-records.ts';
import { enoughRecords, type LineReader } from './line-reader.ts';

/** Records that follow each other. */
export interface Piece {
  readonly bytes: Buffer;
  /** Line of the file that it begins with, from 1. */
  readonly firstLine: number;
}

/** The lines of a chunk, without the header and without a line end at the end. */
export interface TakenChunk extends Omit<Counted, 'lines'> {
  /** sha256 of the text up to its end, hex; the same however it is read. */
  readonly content: string;
  /** Line of the file that it begins with, from 1. */
  readonly firstLine: number;
  /** Line of the file that it ends with. */
  readonly lastLine: number;
  /** Where it begins in the text, from 0. */
  readonly firstByte: number;
  readonly bytes: number;
  /** All its bytes, if they are held in memory. */
  readonly held: Buffer | undefined;
  /** All of it in pieces of whole records. Each call begins anew. @throws {InputError} if the file has changed */
  readonly pieces: () => AsyncGenerator<Piece>;
  /** Lets its memory be used for another chunk. */
  readonly release: () => void;
}

interface Place {
  readonly start: number;
  readonly length: number;
  readonly firstLine: number;
  readonly checksum: string;
}

/** A text that chunks are taken from. */
export interface ChunkedText {
  /** For messages. */
  readonly file: string;
  readonly source: ByteSource;
  readonly reader: LineReader;
  /** What a chunk may have; a longer record makes a longer chunk. */
  readonly chunkBytes: number;
  /** What is looked at at a time where the source can be read again. */
  readonly pieceBytes: number;
}

/**
 * Pieces of a chunk that are read again and in memory at a time: one is sent, one waits, one is read. They take turns in
 * the same memory: left to the garbage collector, it would be looked for every 64 MiB, which took a quarter of the time.
 */
const piecesOnTheirWay = 4;

/** Tells bytes from others, as they are after a change. It names nothing: other bytes of the same checksum are easily made. */
export const checksumOf = (bytes: Buffer): string => `${bytes.length} ${crc32(bytes)}`;

/**
 * Takes the records of a chunk. Those that are one piece are held in memory, and so are all if the source cannot be read
 * again; otherwise they are when the chunk is sent.
 * @param length bytes, of one that was cut before; absent: as many whole records as make a chunk
 * @param hash takes in the content
 */
export async function takeChunk(
  { file, source, reader, chunkBytes, pieceBytes }: ChunkedText,
  length: number | undefined,
  hash: Hash,
): Promise<TakenChunk> {
  const { readAgain } = source;
  const { line: firstLine, position: firstByte } = reader;
  const places: Place[] = [];
  const most = length ?? chunkBytes;
  let held: { readonly bytes: Buffer; readonly release: () => void } | undefined;
  let [bytes, rows, multiLine, plainCells] = [0, 0, false, true];
  do {
    const left = most - bytes;
    const limit = readAgain ? Math.min(left, pieceBytes) : left;
    let piece = await reader.lengthOfRecords(limit);
    if (piece === 0 && bytes === 0) piece = await reader.lengthOfRecord(limit);
    if (length !== undefined && (piece === 0 || limit === left)) piece = left;
    if (piece === 0) break;
    const place = { start: reader.position, length: piece, firstLine: reader.line };
    const taken = await reader.take(piece);
    places.push({ ...place, checksum: readAgain ? checksumOf(taken.bytes) : '' });
    hash.update(taken.bytes);
    held?.release();
    held = bytes === 0 ? { bytes: taken.bytes, release: taken.hold() } : undefined;
    bytes += piece;
    rows += taken.rows;
    multiLine ||= taken.multiLine;
    plainCells &&= taken.plainCells;
  } while (readAgain && bytes < most && (length !== undefined || rows < enoughRecords));
  // A file that was written to while it was read may begin as it was and end as it is now.
  if (held && readAgain && source.wasTouched?.()) await piecesAgain(file, readAgain, places).next();
  const content = hash.digest('hex');
  const pieces = async function* (): AsyncGenerator<Piece> {
    if (held) yield { bytes: held.bytes, firstLine };
    else if (readAgain) yield* piecesAgain(file, readAgain, places);
  };
  return {
    ...{ content, firstLine, lastLine: reader.line, firstByte, bytes, rows, multiLine, plainCells, pieces },
    held: held?.bytes,
    release: () => held?.release(),
  };
}

/** Each only comes if it still is what it was. */
async function* piecesAgain(
  file: string,
  readAgain: NonNullable<ByteSource['readAgain']>,
  places: readonly Place[],
): AsyncGenerator<Piece> {
  const longest = places.reduce((most, { length }) => Math.max(most, length), 0);
  const memories = Array.from({ length: Math.min(places.length, piecesOnTheirWay) }, () =>
    Buffer.allocUnsafeSlow(longest),
  );
  for (const [n, { start, length, firstLine, checksum }] of places.entries()) {
    const bytes = (memories[n % memories.length] as Buffer).subarray(0, length);
    const found = await readAgain(bytes, start);
    if (found < length || checksumOf(bytes) !== checksum) {
      throw new InputChanged(`${file}: was changed while it was read`);
    }
    yield { bytes, firstLine };
  }
}

/** The hash of the next bytes; undefined unless they end where a line ends. */
export async function hashAhead(
  { source: { readAgain }, reader, pieceBytes }: ChunkedText,
  length: number,
  hash: Hash,
): Promise<string | undefined> {
  // What is one piece is taken next, and stays in the reader's memory until then.
  if (!readAgain || length <= pieceBytes) {
    const bytes = await reader.peekLines(length);
    return bytes && hash.update(bytes).digest('hex');
  }
  const end = reader.position + length;
  const memory = Buffer.allocUnsafeSlow(Math.min(pieceBytes, length));
  for (let at = reader.position; at < end; at += memory.length) {
    const bytes = memory.subarray(0, end - at);
    if ((await readAgain(bytes, at)) < bytes.length) return undefined;
    hash.update(bytes);
  }
  const next = Buffer.alloc(1);
  const ends = (await readAgain(next, end)) === 0 || isLineEnd(next[0]);
  return ends ? hash.digest('hex') : undefined;
}
