import type { FileReading } from '../event/reading.ts';
import type { RecordSource } from '../event/record-source.ts';
import type { SentChunk } from '../ledger/ledger.ts';
import type { KnownChunk } from './cut-chunks.ts';

/** A chunk as it is sent, whatever the format. */
export interface SendableChunk extends SentChunk {
  /** What keeps it from being stored twice; absent: its name. */
  readonly token?: string;
  /** How its records are read. */
  readonly source: RecordSource;
  /** Its bytes, in the format of the source. Each call begins anew, so that they can be sent again. */
  readonly stream: () => AsyncIterable<Buffer>;
  /** Lets go of its bytes, after which they cannot be sent any more. */
  readonly release: () => void;
  /** How it can be sent with others in one stream; absent where it cannot. */
  readonly bundled?: BundledRecords;
  /** Line of the file that it begins with, from 1, or row where there are no lines. */
  readonly firstLine: number;
  /** What messages call a place in the file. */
  readonly unit: 'line' | 'row';
  /** What an earlier run left of it in the ledger. */
  readonly known: KnownChunk | undefined;
  /** Chunks of the same bytes that were read in another way. */
  readonly otherwise: readonly KnownChunk[];
}

/** Records of a chunk between those of others. */
export interface BundledRecords {
  readonly source: RecordSource;
  /** RowBinary: of each record its line with `mark` added, and its bytes. */
  readonly records: (mark: bigint) => Buffer;
}

/** How one input is read into chunks. */
export interface ChunkReadOptions {
  readonly reading: FileReading;
  /** What a chunk of text aims at; less where it has to be held in memory. Absent: what is fastest. */
  readonly chunkBytes?: number | undefined;
  /** What of a file that can be read again is looked at at a time; absent: that of production. */
  readonly pieceBytes?: number;
  /** Chunks sent at a time. */
  readonly parallel: number;
  readonly knownChunks: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  /** See `ChunkOptions`. */
  readonly beginChunk: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  readonly onBytes: (bytes: number) => void;
  /** Ends the reading, with an AbortError. */
  readonly signal?: AbortSignal;
}
