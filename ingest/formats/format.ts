import type { OpenInput, ReadOptions } from '../chunks/sendable-chunk.ts';
import type { Input } from '../input/input.ts';

/** How records are written in a file. */
export interface Format {
  readonly name: string;
  /** Endings of file names; each is of one format. */
  readonly endings: readonly string[];
  /** What `Content-Type` calls it. */
  readonly mediaTypes: readonly string[];
  /** The format's name in ClickHouse. */
  readonly clickhouse: string;
  /** Absent where it is not text: then it can be neither packed nor read as a small list. */
  readonly text?: {
    /** Between cells, which may be in quotes and hold line ends then; absent where a record is a line. */
    readonly delimiter?: string;
  };
  /**
   * Reads the beginning of an input, which tells how its records become the fields of events.
   * @throws {InputError} for an input that cannot be read or whose columns do not fit
   */
  readonly open: (input: Input, options: ReadOptions) => Promise<OpenInput>;
}
