import { createHash } from 'node:crypto';
import type { ByteSource } from '../input/byte-source.ts';
import { LineReader } from './line-reader.ts';
import { Pieces } from './pieces.ts';

/** A chunk that the ledger knows to begin with a certain line. */
export interface KnownChunk {
  /** sha256 of the content, hex: its name everywhere. */
  readonly id: string;
  readonly bytes: number;
  /** sha256 of the content alone, hex; of chunks of earlier versions empty. */
  readonly content: string;
  /** Events counted from it; undefined while it is in doubt: it was sent, but the answer is not known. */
  readonly loadedRows: number | undefined;
}

export interface Chunk {
  readonly id: string;
  /** sha256 of its first line, hex; the same however the line is read. */
  readonly firstLineHash: string;
  /** sha256 of its lines, hex; the same however they are read. */
  readonly content: string;
  /** Lines without the header, no line end at the end. */
  readonly body: Buffer;
  /** Lets the memory of the body be used for another chunk. */
  readonly release: () => void;
  readonly rows: number;
  /** Some record holds line ends. */
  readonly multiLine: boolean;
  /** Line of the file that the chunk begins with, from 1. */
  readonly firstLine: number;
  readonly known: KnownChunk | undefined;
  /** Chunks of these bytes that were read in another way; none of a known chunk. */
  readonly otherwise: readonly KnownChunk[];
}

export interface ChunkOptions {
  /** For messages. */
  readonly file: string;
  /** Lines before the header, or before the first record, that are left out. */
  readonly skipLines: number;
  /** The first line names the columns and belongs to every chunk. */
  readonly header: boolean;
  /** Of CSV, in which quoted cells may hold line ends: the byte between cells. */
  readonly csvDelimiter?: number;
  /** What else tells chunks of the same bytes apart: how their columns are read, */
  readonly fingerprint: string;
  /** and what makes them other bytes altogether. */
  readonly salt: string;
  /** What a chunk aims at; a longer line makes a longer chunk. */
  readonly chunkBytes: number;
  /** Chunks of earlier runs that began with the line of this hash. */
  readonly knownChunks: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  /** Called before a chunk is cut anew: then no other load does so at this line. Those that are known by then. */
  readonly beginChunk: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  /** Called before the first chunk with the header, or without one with the first line of records. */
  readonly onFirstLine: (line: string) => void;
}

/**
 * Cuts a stream at line ends into chunks named by their content. Where an earlier run has cut the same bytes,
 * the same chunk comes out, whatever `chunkBytes` was then and however the file has grown since, also where that run
 * is at it now, so that bytes are never sent under two names. Blank lines between chunks belong to none.
 * @throws {InputError} for a line that has no end within 16 MiB
 */
export async function* cutChunks(source: ByteSource, options: ChunkOptions): AsyncGenerator<Chunk> {
  const reader = new LineReader(source, options);
  for (let n = 0; n < options.skipLines; n++) await reader.skipLine();
  const header = options.header ? await reader.takeHeader() : Buffer.alloc(0);
  if (header.length > 0) options.onFirstLine(header.toString());
  const hashOf = (fingerprint: string) => {
    const begin = createHash('sha256').update(options.salt).update(fingerprint).update(header).update('\n');
    return (content: Buffer) => begin.copy().update(content).digest('hex');
  };
  const contentOf = hashOf('');
  const nameOf = options.fingerprint === '' ? contentOf : hashOf(options.fingerprint);
  const pieces = new Pieces();

  for (let first = true; await reader.skipBlankLines(); first = false) {
    const line = await reader.peekLine();
    if (first && !options.header) options.onFirstLine(line.toString());
    const firstLineHash = contentOf(line);
    const firstLine = reader.line;
    let candidates = await options.knownChunks(firstLineHash);
    let known = await findKnown(reader, candidates, nameOf, pieces);
    if (!known) {
      candidates = [...candidates, ...(await options.beginChunk(firstLineHash))];
      known = await findKnown(reader, candidates, nameOf, pieces);
    }
    const others = known ? [] : candidates.filter(({ id }) => !pieces.has(id));
    const otherwise = await ofSameBytes(reader, others, contentOf);
    const length = known ? known.bytes : await reader.lengthOfRecords(options.chunkBytes);
    const taken = reader.take(length);
    const content = contentOf(taken.body);
    const id = pieces.take(nameOf === contentOf ? content : nameOf(taken.body));
    yield { id, firstLineHash, content, ...taken, firstLine, known, otherwise };
  }
}

/** Those candidates of which the next bytes are. */
async function ofSameBytes(
  reader: LineReader,
  candidates: readonly KnownChunk[],
  contentOf: (content: Buffer) => string,
): Promise<KnownChunk[]> {
  const found: KnownChunk[] = [];
  for (const candidate of candidates) {
    const next = await reader.peekLines(candidate.bytes);
    // Without a mapping the name is the hash of the content.
    if (next && contentOf(next) === (candidate.content || candidate.id)) found.push(candidate);
  }
  return found;
}

async function findKnown(
  reader: LineReader,
  candidates: readonly KnownChunk[],
  nameOf: (content: Buffer) => string,
  pieces: Pieces,
): Promise<KnownChunk | undefined> {
  for (const candidate of [...candidates].sort((a, b) => b.bytes - a.bytes)) {
    const content = await reader.peekLines(candidate.bytes);
    if (content && pieces.peek(nameOf(content)) === candidate.id) return candidate;
  }
  return undefined;
}
