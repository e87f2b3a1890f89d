import { createHash } from 'node:crypto';
import type { ByteSource } from '../input/byte-source.ts';
import { Pieces } from './chunk-names.ts';
import { LineReader } from './line-reader.ts';
import { hashAhead, type TakenChunk, takeChunk } from './take-chunk.ts';

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

export interface Chunk extends TakenChunk {
  readonly id: string;
  /** sha256 of its first line, hex; the same however the line is read. */
  readonly firstLineHash: string;
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
  /** What a chunk aims at; a longer record makes a longer chunk. */
  readonly chunkBytes: number;
  /** What is looked at at a time of a file that can be read again. */
  readonly pieceBytes: number;
  /** Chunks sent at a time. */
  readonly parallel: number;
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
  const text = { ...options, source, reader };
  for (let n = 0; n < options.skipLines; n++) await reader.skipLine();
  const header = options.header ? await reader.takeHeader() : Buffer.alloc(0);
  if (header.length > 0) options.onFirstLine(header.toString());
  const hashOf = (fingerprint: string) => {
    const begin = createHash('sha256').update(options.salt).update(fingerprint).update(header).update('\n');
    return () => begin.copy();
  };
  const contentHash = hashOf('');
  const nameHash = options.fingerprint === '' ? contentHash : hashOf(options.fingerprint);
  const contentAhead = (length: number) => hashAhead(text, length, contentHash);
  const nameAhead = (length: number) => hashAhead(text, length, nameHash);
  const pieces = new Pieces();

  for (let first = true; await reader.skipBlankLines(); first = false) {
    const line = await reader.peekLine();
    if (first && !options.header) options.onFirstLine(line.toString());
    const firstLineHash = contentHash().update(line).digest('hex');
    let candidates = await options.knownChunks(firstLineHash);
    let known = await findKnown(nameAhead, candidates, pieces);
    if (!known) {
      candidates = [...candidates, ...(await options.beginChunk(firstLineHash))];
      known = await findKnown(nameAhead, candidates, pieces);
    }
    const others = known ? [] : candidates.filter(({ id }) => !pieces.has(id));
    const otherwise = await ofSameBytes(contentAhead, others);
    const bytes = known?.bytes ?? options.chunkBytes;
    const end = { bytes, exactly: known !== undefined };
    // Where they are the same, it is computed once.
    const name = nameHash === contentHash ? undefined : nameHash();
    const taken = await takeChunk(text, end, contentHash, name);
    const id = pieces.take(name?.digest('hex') ?? taken.content);
    yield { ...taken, id, firstLineHash, known, otherwise };
  }
}

/** The hash of so many of the next bytes, if they end where a line ends. */
type HashAhead = (length: number) => Promise<string | undefined>;

/** The candidates whose bytes come next. */
async function ofSameBytes(
  contentAhead: HashAhead,
  candidates: readonly KnownChunk[],
): Promise<KnownChunk[]> {
  const found: KnownChunk[] = [];
  for (const candidate of candidates) {
    // Without a mapping the name is the hash of the content.
    const expected = candidate.content || candidate.id;
    if ((await contentAhead(candidate.bytes)) === expected) found.push(candidate);
  }
  return found;
}

async function findKnown(
  nameAhead: HashAhead,
  candidates: readonly KnownChunk[],
  pieces: Pieces,
): Promise<KnownChunk | undefined> {
  for (const candidate of [...candidates].sort((a, b) => b.bytes - a.bytes)) {
    const name = await nameAhead(candidate.bytes);
    if (name !== undefined && pieces.peek(name) === candidate.id) return candidate;
  }
  return undefined;
}
