import type { ChunkReadOptions, SendableChunk } from '../chunks/sendable-chunk.ts';
import type { Input } from '../input/input.ts';

/** How records are written in a file. */
export interface Format {
  readonly name: string;
  /** Endings of file names; each is of one format. */
  readonly endings: readonly string[];
  /** The format's name in ClickHouse. */
  readonly clickhouse: string;
  /** Absent where it is not text: then it can be neither packed nor read as a small list. */
  readonly text?: {
    /** Quoted cells may hold line ends. */
    readonly quotes: boolean;
  };
  /**
   * Cuts the records of an input into chunks, and says of each how a record becomes the fields of an event.
   * @throws {InputError} for an input that cannot be read or whose columns do not fit
   */
  readonly chunksOf: (input: Input, options: ChunkReadOptions) => AsyncGenerator<SendableChunk>;
}
