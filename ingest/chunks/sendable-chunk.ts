import type { FileReading } from '../event/reading.ts';
import type { RecordSource } from '../event/record-source.ts';
import type { SentChunk } from '../ledger/ledger.ts';

/** A chunk that the ledger knows to begin with what comes next in an input. */
export interface KnownChunk {
  /** Its name. */
  readonly id: string;
  /** sha256 of the input up to its end, hex; the same however it is read. */
  readonly content: string;
  readonly bytes: number;
  /** Events counted from it; undefined while it is in doubt: it was sent, but the answer is not known. */
  readonly loadedRows: number | undefined;
}

/** What is loaded comes before what may have been taken back, and the longest first. */
export const firstCut = (a: KnownChunk, b: KnownChunk): number =>
  Number(b.loadedRows !== undefined) - Number(a.loadedRows !== undefined) || b.bytes - a.bytes;

/** What a command has judged, and not stored, by its head: the ledger does not know it. */
export type JudgedChunks = ReadonlyMap<string, readonly KnownChunk[]>;

/** Looks up the chunks that were sent from a place: see `ChunkChain.head`. The first that comes next is cut again. */
export type KnownChunks = (head: string) => Promise<readonly KnownChunk[]>;

/** A chunk as it is sent, whatever the format. */
export interface SendableChunk extends SentChunk {
  /** How its records are read. */
  readonly source: RecordSource;
  /** Its bytes, in the format of the source. Each call begins anew, so that they can be sent again. */
  readonly stream: () => AsyncIterable<Buffer>;
  /** Lets go of its bytes, after which they cannot be sent any more. */
  readonly release: () => void;
  /** How it can be sent with others in one stream; absent where it cannot. */
  readonly bundled?: BundledRecords;
  /** Line of the file that it ends with, or record or row where there are no lines. */
  readonly lastLine: number;
  /** What messages call a place in the file. */
  readonly unit: 'line' | 'record' | 'row';
  /** All that the ledger knew to begin where it does, when it was cut. */
  readonly candidates: readonly Candidate[];
}

/** A chunk that was sent from the place where an input is now. */
export interface Candidate extends KnownChunk {
  /** Its bytes come next in the input. */
  readonly matches: boolean;
}

/** What an earlier run left of a chunk in the ledger. */
export const knownAs = ({ id, candidates }: SendableChunk): KnownChunk | undefined =>
  candidates.find((each) => each.matches && each.id === id);

/** Records of a chunk between those of others. */
export interface BundledRecords {
  readonly source: RecordSource;
  /** RowBinary: of each record its line with `mark` added, and its bytes. */
  readonly records: (mark: bigint) => Iterable<Buffer>;
}

/** How one input is read into chunks. */
export interface ReadOptions {
  readonly reading: FileReading;
  /** What a chunk of text or Avro may have; absent: what is fastest. */
  readonly chunkBytes?: number | undefined;
  readonly onBytes: (bytes: number) => void;
  /** Ends the reading, with an AbortError. */
  readonly signal?: AbortSignal;
}

/** An input that has been opened, and of which the beginning is known. */
export interface OpenInput {
  /** The lock of its load: inputs that begin alike are loaded one after another. Empty where it has no records. */
  readonly begins: string;
  /**
   * Cuts it, once.
   * @throws {InputError} for an input that cannot be read, with what came before as chunks
   */
  readonly chunks: (known: KnownChunks) => AsyncGenerator<SendableChunk>;
  readonly close: () => Promise<void>;
}
