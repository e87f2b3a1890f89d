import { createHash } from 'node:crypto';
import type { ByteSource } from '../input/byte-source.ts';
import { LineReader } from './line-reader.ts';

/** A chunk that the ledger knows to begin with a certain line. */
export interface KnownChunk {
  /** sha256 of the content, hex: its name everywhere. */
  readonly id: string;
  readonly bytes: number;
  /** Events counted from it; undefined while it is in doubt: it was sent, but the answer is not known. */
  readonly loadedRows: number | undefined;
}

export interface Chunk {
  readonly id: string;
  /** sha256 of its first line, hex. */
  readonly firstLineHash: string;
  /** Lines without the header, no line end at the end. */
  readonly body: Buffer;
  readonly rows: number;
  /** Line of the file that the chunk begins with, from 1. */
  readonly firstLine: number;
  readonly known: KnownChunk | undefined;
}

export interface ChunkOptions {
  /** For messages. */
  readonly file: string;
  /** The first line names the columns and belongs to every chunk. */
  readonly header: boolean;
  /** Quoted fields may hold line ends. */
  readonly csv: boolean;
  /** What a chunk aims at; a longer line makes a longer chunk. */
  readonly chunkBytes: number;
  /** Chunks of earlier runs that began with the line of this hash. */
  readonly knownChunks: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  /** Called before a chunk is cut anew: then no other load does so at this line. Those that are known by then. */
  readonly beginChunk: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  /** Called with the header before the first chunk. */
  readonly onHeader?: (header: string) => void;
}

/**
 * Cuts a stream at line ends into chunks named by their content. Where an earlier run has cut the same bytes,
 * the same chunk comes out, whatever `chunkBytes` was then and however the file has grown since, also where that run
 * is at it now, so that bytes are never sent under two names. Blank lines between chunks belong to none.
 * @throws {InputError} for a line that has no end within 16 MiB
 */
export async function* cutChunks(
  source: ByteSource,
  options: ChunkOptions,
): AsyncGenerator<Chunk & { header: Buffer }> {
  const reader = new LineReader(source, options);
  await reader.skipByteOrderMark();
  const header = options.header ? await reader.takeHeader() : Buffer.alloc(0);
  if (options.header && header.length > 0) options.onHeader?.(header.toString());
  const nameOf = (content: Buffer) =>
    createHash('sha256').update(header).update('\n').update(content).digest('hex');

  while (await reader.skipBlankLines()) {
    const firstLineHash = nameOf(await reader.peekLine());
    const firstLine = reader.line;
    const known =
      (await findKnown(reader, await options.knownChunks(firstLineHash), nameOf)) ??
      (await findKnown(reader, await options.beginChunk(firstLineHash), nameOf));
    const length = known ? known.bytes : await reader.lengthOfLines(options.chunkBytes);
    const { body, rows } = reader.take(length);
    yield {
      id: known?.id ?? nameOf(body),
      firstLineHash,
      body,
      rows,
      firstLine,
      header,
      known,
    };
  }
}

async function findKnown(
  reader: LineReader,
  candidates: readonly KnownChunk[],
  nameOf: (content: Buffer) => string,
): Promise<KnownChunk | undefined> {
  for (const candidate of [...candidates].sort((a, b) => b.bytes - a.bytes)) {
    const content = await reader.peekLines(candidate.bytes);
    if (content && nameOf(content) === candidate.id) return candidate;
  }
  return undefined;
}
