import type { RecordSource } from '../event/record-source.ts';
import { openBytes, type TextReading } from '../input/byte-source.ts';
import type { Input } from '../input/input.ts';
import { ChunkChain } from './chunk-chain.ts';
import { type Framing, framedRecords } from './framed-records.ts';
import { LineReader } from './line-reader.ts';
import type {
  Candidate,
  KnownChunk,
  KnownChunks,
  OpenInput,
  ReadOptions,
  SendableChunk,
} from './sendable-chunk.ts';
import { type ChunkedText, hashAhead, type Piece, type TakenChunk, takeChunk } from './take-chunk.ts';

/** What a format of text adds to the cutting of chunks. */
export interface TextFormat extends Omit<TextReading, 'encoding'> {
  /** The first line names the columns and belongs to every chunk. */
  readonly header: boolean;
  /** Between cells, where quoted ones may hold line ends; absent: a record is a line. One byte. */
  readonly quotedDelimiter?: string;
  /**
   * How records become fields, from the first record, which is the header if there is one.
   * @throws {InputError} for columns that do not fit
   */
  readonly readerOf: (firstRecord: string) => (framing: Framing, plainCells: boolean) => RecordSource;
}

/** @throws {InputError} for an input that cannot be read or whose columns do not fit */
export async function openText(
  input: Input,
  { reading, chunkBytes, ...options }: ReadOptions,
  { header, quotedDelimiter: delimiter, readerOf, ...text }: TextFormat,
): Promise<OpenInput> {
  const how = { ...text, encoding: reading.encoding };
  const source = await openBytes(input, options.onBytes, options.signal, how);
  try {
    const reader = new LineReader(source, {
      file: input.name,
      isWhole: input.isWhole ?? false,
      ...(delimiter !== undefined && { csvDelimiter: delimiter.charCodeAt(0) }),
    });
    for (let n = 0; n < reading.skipLines; n++) await reader.skipLine();
    const names = header ? await reader.takeHeader() : Buffer.alloc(0);
    const chain = new ChunkChain(reading, names);
    await reader.skipLines(reading.channel?.known ?? 0);
    const hasRecords = await reader.skipBlankLines();
    const firstRecord = `${hasRecords && names.length === 0 ? await reader.peekRecord() : names}`;
    const first = hasRecords ? await reader.peekLine() : undefined;
    if (firstRecord === '' && reading.skipLines > 0)
      reading.warn(`${input.name}: nothing stands behind the ${reading.skipLines} lines that are left out`);
    const chunked = {
      ...{ file: input.name, source, reader },
      chunkBytes: chunkBytes ?? (source.readAgain ? mostChunkBytes : mostHeldBytes),
      pieceBytes: (source.size ?? Number.POSITIVE_INFINITY) <= smallInputBytes ? smallInputBytes : pieceBytes,
    };
    const sourceOf = firstRecord && readerOf(firstRecord);
    return {
      begins: first ? chain.lock(first) : '',
      close: () => source.close(),
      chunks: async function* (known) {
        if (!sourceOf) return;
        for await (const chunk of cutChunks(chunked, chain, known)) {
          const rows = chunk.rows * reading.eventsPerRecord;
          yield sendable({ ...chunk, rows }, sourceOf, source.unit, delimiter);
          // The next one has its place when this one is loaded.
          if (reading.channel) return;
        }
      },
    };
  } catch (error) {
    await source.close();
    throw error;
  }
}

export interface Chunk extends TakenChunk {
  readonly id: string;
  readonly head: string;
  readonly candidates: readonly Candidate[];
}

/**
 * Cuts a text at record ends into chunks, from where its reader is. What was sent before is cut where it was cut then,
 * so that a text which has grown since only adds what is new. Blank lines between chunks belong to none.
 * @throws {InputError} for a line that has no end within 16 MiB, and for a text that changes while it is read
 */
export async function* cutChunks(
  text: ChunkedText,
  chain: ChunkChain,
  knownChunks: KnownChunks,
): AsyncGenerator<Chunk> {
  while (await text.reader.skipBlankLines()) {
    const head = chain.head(await text.reader.peekLine());
    const candidates = await compared(text, chain, await knownChunks(head));
    const known = candidates.find(({ id, content, matches }) => matches && id === chain.nameOf(content));
    const taken = await takeChunk(text, known?.bytes, chain.begin());
    chain.pass(taken.content);
    yield { ...taken, id: chain.nameOf(taken.content), head, candidates };
  }
}

async function compared(
  text: ChunkedText,
  chain: ChunkChain,
  known: readonly KnownChunk[],
): Promise<Candidate[]> {
  const candidates: Candidate[] = [];
  for (const each of known) {
    const alike = candidates.find(({ content }) => content === each.content);
    const ahead = alike ? undefined : await hashAhead(text, each.bytes, chain.begin());
    candidates.push({ ...each, matches: alike?.matches ?? ahead === each.content });
  }
  return candidates;
}

function sendable(
  { held, pieces, multiLine, plainCells, ...chunk }: Chunk,
  sourceOf: ReturnType<TextFormat['readerOf']>,
  unit: SendableChunk['unit'],
  delimiter: string | undefined,
): SendableChunk {
  const framing = delimiter === undefined ? {} : { delimiter };
  const { firstLine } = chunk;
  return {
    ...chunk,
    unit,
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
        records: (mark) => framedRecords(held, { ...framing, firstLine }, mark),
      },
    }),
  };
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

/**
 * An input of at most this size is one piece, or several where it has more records than a piece. A piece is held until it is sent, and
 * can be stored together with those of others.
 */
export const smallInputBytes = 16 << 20;
/** Large enough for few reads, small enough for two of them to be no matter. */
const pieceBytes = 4 << 20;
/** What ClickHouse holds of a chunk in memory is about four times that; larger ones are no faster. */
const mostChunkBytes = 192 << 20;
/** Two chunks on their way and a third that is read take 200 MB of the process's 300, which is what is left beside Node. */
const mostHeldBytes = 48 << 20;

const lineEnd = Buffer.from('\n');
