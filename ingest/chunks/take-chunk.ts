import type { Hash } from 'node:crypto';
import type { ByteSource } from '../input/byte-source.ts';
import { InputError } from '../input/input-error.ts';
import { checksumOf } from './checksum.ts';
import { isLineEnd } from './count-records.ts';
import type { LineReader } from './line-reader.ts';

/** Records that follow each other. */
export interface Piece {
  readonly bytes: Buffer;
  /** Line of the file that it begins with, from 1. */
  readonly firstLine: number;
}

/** The lines of a chunk, without the header and without a line end at the end. */
export interface TakenChunk {
  /** sha256 of its lines, hex; the same however they are read. */
  readonly content: string;
  /** Line of the file that it begins with, from 1. */
  readonly firstLine: number;
  readonly bytes: number;
  /** Records; blank lines do not count. */
  readonly rows: number;
  /** Some record holds line ends. */
  readonly multiLine: boolean;
  /** See `Counted`. */
  readonly plainCells: boolean;
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
  /** What is looked at at a time where the source can be read again. */
  readonly pieceBytes: number;
  /** Chunks sent at a time. */
  readonly parallel: number;
}

/** Where a chunk ends: with the last whole record within so many bytes, or exactly there, as it did in an earlier run. */
export interface ChunkEnd {
  readonly bytes: number;
  readonly exactly: boolean;
}

/**
 * As many as the rollups can make good use of: what a record costs falls with those that are grouped beside it, and what
 * ClickHouse needs of memory grows with them, to 700 MB of so many. More than a million, so that a file of whole millions,
 * whose records are only estimated, is not cut into a chunk more for a few of them.
 */
const mostRows = 1_100_000;
/** Half a million, and a tenth more as above, make a chunk worth its while. There are larger ones for files of many. */
const goodRows = 550_000;
/** Of fewer chunks for each sender one of them waits too long at the end: 1.77 cores, not 1.87, for four million records. */
const goodRounds = 4;

/** So many that every sender has as much to do, and is busy to the end of the text; of few, all that there are. */
function evenRows({ size, readAgain }: ByteSource, parallel: number, bytesPerRow: number): number {
  if (size === undefined || !readAgain) return mostRows;
  const rows = size / bytesPerRow / parallel;
  if (rows <= goodRows) return mostRows;
  return rows / Math.max(Math.ceil(rows / mostRows), Math.min(goodRounds, Math.ceil(rows / goodRows)));
}

/**
 * Pieces of a chunk that are read again and in memory at a time: one is sent, one waits, one is read. They take turns in
 * the same memory: left to the garbage collector, it would be looked for every 64 MiB, which took a quarter of the time.
 */
const piecesOnTheirWay = 4;

/**
 * Takes the records of a chunk. Those that are one piece are held in memory, and so are all if the source cannot be read
 * again; otherwise they are when the chunk is sent.
 * @param beginHash the hash of the content, before the first byte
 * @param name another hash that is to take it in
 */
export async function takeChunk(
  { file, source, reader, pieceBytes, parallel }: ChunkedText,
  end: ChunkEnd,
  beginHash: () => Hash,
  name: Hash | undefined,
): Promise<TakenChunk> {
  const hash = beginHash();
  const { readAgain } = source;
  const { line: firstLine } = reader;
  const places: Place[] = [];
  let held: { readonly bytes: Buffer; readonly release: () => void } | undefined;
  let [bytes, rows, multiLine, plainCells] = [0, 0, false, true];
  do {
    const left = end.bytes - bytes;
    const most = readAgain ? Math.min(left, pieceBytes) : left;
    let length = await reader.lengthOfRecords(most);
    if (length === 0 && bytes === 0) length = await reader.lengthOfRecord(most);
    if (end.exactly && (length === 0 || most === left)) length = left;
    if (length === 0) break;
    const place = { start: reader.position, length, firstLine: reader.line };
    const taken = await reader.take(length);
    places.push({ ...place, checksum: readAgain ? checksumOf(taken.bytes) : '' });
    hash.update(taken.bytes);
    name?.update(taken.bytes);
    held?.release();
    held = bytes === 0 ? { bytes: taken.bytes, release: taken.hold() } : undefined;
    bytes += length;
    rows += taken.rows;
    multiLine ||= taken.multiLine;
    plainCells &&= taken.plainCells;
  } while (
    readAgain &&
    bytes < end.bytes &&
    (end.exactly || rows < evenRows(source, parallel, bytes / rows))
  );
  const content = hash.digest('hex');
  const pieces = async function* (): AsyncGenerator<Piece> {
    if (held) yield { bytes: held.bytes, firstLine };
    else if (readAgain) yield* piecesAgain(file, readAgain, places);
  };
  return {
    ...{ content, bytes, rows, multiLine, plainCells, firstLine, pieces },
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
      throw new InputError(`${file}: was changed while it was loaded`);
    }
    yield { bytes, firstLine };
  }
}

/** The hash of the next bytes; undefined unless they end where a line ends. */
export async function hashAhead(
  { source: { readAgain }, reader, pieceBytes }: ChunkedText,
  length: number,
  beginHash: () => Hash,
): Promise<string | undefined> {
  const hash = beginHash();
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
