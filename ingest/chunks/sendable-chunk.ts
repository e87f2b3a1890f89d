import type { Readable } from 'node:stream';
import { eventFields, requiredFields, type TypedFields } from '../event/event-insert.ts';
import type { LineRecord } from '../event/line-records.ts';
import type { FileFormat, Format } from '../input/file-format.ts';
import { InputError } from '../input/input-error.ts';
import type { SentChunk } from '../load/ledger.ts';
import type { KnownChunk } from './cut-chunks.ts';
import type { LineRun } from './line-range.ts';

/** Bytes to send, and how to read them. Each call begins anew, so that they can be sent again. */
export interface Content {
  readonly format: Format;
  /** Absent: all fields are text. */
  readonly typed?: TypedFields;
  readonly stream: () => Readable;
}

/** A chunk as it is sent, whatever the format. */
export interface SendableChunk extends SentChunk {
  /** What keeps it from being stored twice; absent: its name. */
  readonly token?: string;
  readonly content: Content;
  /** Its lines, or some of them, one by one; for a chunk that was refused. */
  readonly records: (only?: LineRun) => Iterable<LineRecord> | AsyncIterable<LineRecord>;
  /** Some of its lines, in their order, as they can be sent. */
  readonly contentOf: (runs: readonly LineRun[]) => Content;
  /** It has a NUL byte, which the engine would take as text: its lines are to be examined. */
  readonly damaged: boolean;
  /** What an earlier run left of it in the ledger. */
  readonly known: KnownChunk | undefined;
  /** For messages: `from line 1`. */
  readonly where: string;
}

/** How one file is read into chunks. */
export interface ChunkReadOptions {
  /** Path, or `-` for standard input. */
  readonly file: string;
  readonly fileFormat: FileFormat;
  readonly chunkBytes: number;
  /** Chunks sent at a time. */
  readonly parallel: number;
  /** Columns that no event has are left out instead of refused. */
  readonly ignoreUnknown: boolean;
  readonly knownChunks: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  /** See `ChunkOptions`. */
  readonly beginChunk: (firstLineHash: string) => Promise<readonly KnownChunk[]>;
  readonly onBytes: (bytes: number) => void;
  /** Ends the reading, with an AbortError. */
  readonly signal?: AbortSignal;
}

/** @throws {InputError} for columns that make no events */
export function requireColumns({ file, ignoreUnknown }: ChunkReadOptions, columns: readonly string[]): void {
  const unknown = columns.find((name) => !eventFields.some((field) => field === name));
  if (unknown !== undefined && !ignoreUnknown) {
    throw new InputError(
      `${file}: column ${unknown} is not a field of an event; there are ${eventFields.join(', ')}. --ignore-unknown leaves it out`,
    );
  }
  const twice = columns.find((name, n) => columns.indexOf(name) !== n);
  if (twice !== undefined) throw new InputError(`${file}: column ${twice} is there twice`);
  const missing = requiredFields.find((name) => !columns.includes(name));
  if (missing) throw new InputError(`${file}: column ${missing} is missing`);
}
