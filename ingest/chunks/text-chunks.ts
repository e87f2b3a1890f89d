import type { RecordSource } from '../event/record-source.ts';
import { type ByteSource, openBytes } from '../input/byte-source.ts';
import type { Input } from '../input/input.ts';
import { cutChunks } from './cut-chunks.ts';
import { type Framing, framedRecords } from './framed-records.ts';
import type { ChunkReadOptions, SendableChunk } from './sendable-chunk.ts';
import type { Piece } from './take-chunk.ts';

/** What a format of text adds to the cutting of chunks. */
export interface TextFormat {
  /** The first line names the columns and belongs to every chunk. */
  readonly header: boolean;
  /** Between cells, where quoted ones may hold line ends; absent: a record is a line. One byte. */
  readonly quotedDelimiter?: string;
  /**
   * How records become fields, from the first line: that of the header, or without one the first record.
   * @throws {InputError} for columns that do not fit
   */
  readonly readerOf: (firstLine: string) => (framing: Framing, plainCells: boolean) => RecordSource;
}

/** The chunks of a text. @throws {InputError} for an input that cannot be read or whose columns do not fit */
export async function* textChunks(
  input: Input,
  options: ChunkReadOptions,
  { header, quotedDelimiter: delimiter, readerOf }: TextFormat,
): AsyncGenerator<SendableChunk> {
  const { reading, knownChunks, beginChunk } = options;
  let sourceOf: ReturnType<typeof readerOf> = () => {
    throw new Error('the first line comes before the first chunk');
  };
  const bytes = await openBytes(input, options.onBytes, options.signal);
  const chunks = cutChunks(bytes, {
    file: input.name,
    skipLines: reading.skipLines,
    header,
    ...(delimiter !== undefined && { csvDelimiter: delimiter.charCodeAt(0) }),
    fingerprint: reading.fingerprint,
    salt: reading.salt,
    chunkBytes: evenChunks(options, bytes),
    pieceBytes: options.pieceBytes ?? pieceBytes,
    parallel: options.parallel,
    knownChunks,
    beginChunk,
    onFirstLine: (line) => {
      sourceOf = readerOf(line);
    },
  });
  try {
    for await (const { held, pieces, multiLine, plainCells, ...chunk } of chunks) {
      const framing = delimiter === undefined ? {} : { delimiter };
      const { firstLine } = chunk;
      yield {
        ...chunk,
        unit: 'line',
        // Only of what is sent: to make it takes as long as to read a small file.
        get source() {
          return sourceOf(multiLine ? 'records' : 'lines', plainCells);
        },
        stream: () => (multiLine ? recordsOf(pieces(), framing) : linesOf(pieces())),
        ...(held && {
          bundled: {
            get source() {
              return sourceOf('records', false);
            },
            records: (mark) => Buffer.concat([...framedRecords(held, { ...framing, firstLine }, mark)]),
          },
        }),
      };
    }
  } finally {
    await bytes.close();
  }
}

async function* linesOf(pieces: AsyncIterable<Piece>): AsyncGenerator<Buffer> {
  for await (const { bytes } of pieces) yield bytes;
  yield lineEnd;
}

async function* recordsOf(
  pieces: AsyncIterable<Piece>,
  framing: { readonly delimiter?: string },
): AsyncGenerator<Buffer> {
  for await (const { bytes, firstLine } of pieces) yield* framedRecords(bytes, { ...framing, firstLine });
}

/** Large enough for few reads, small enough for two of them to be no matter. */
const pieceBytes = 4 << 20;
/** What ClickHouse holds of a chunk in memory is about four times that; larger ones are no faster. */
const mostChunkBytes = 320 << 20;
/** Two chunks on their way and a third that is read take 200 MB of the process's 300, which is what is left beside Node. */
const mostHeldBytes = 48 << 20;
/** A smaller chunk costs more than what an idle sender would have done. */
const minChunkBytes = 16 << 20;
/** What whole lines may add to a chunk, so that no small one is left at the end. */
const lineSlack = 64 << 10;

/** The size of chunks of a file that keeps every sender busy to its end. */
function evenChunks(options: ChunkReadOptions, { size, readAgain }: ByteSource): number {
  const most = options.chunkBytes ?? mostChunkBytes;
  const chunkBytes = readAgain ? most : Math.min(most, mostHeldBytes);
  if (size === undefined) return chunkBytes;
  // More than there is, for which no memory is set aside.
  if (size < 2 * minChunkBytes) return Math.min(chunkBytes, size + 1);
  const rounds = Math.ceil(size / (options.parallel * chunkBytes));
  return Math.min(chunkBytes, Math.ceil(size / (options.parallel * rounds)) + lineSlack);
}

const lineEnd = Buffer.from('\n');
