import { basename } from 'node:path';

/** What can be loaded, wherever it is kept. Errors are those of the system; the reader adds the name of the input. */
export interface Input {
  /** Its path or address; `-` for standard input. For messages and the history of loads. */
  readonly name: string;
  /** What a file name of it ends in, in lower case: format and packing follow from it. `a.NDJSON.gz`: `ndjson`, `gz`. */
  readonly endings: readonly string[];
  /** Nothing will ever follow what is there, so that a last line without an end is whole. Absent: it may grow. */
  readonly isWhole?: true;
  /** It may have come over HTTP, to a process that serves others, too. */
  readonly isSent?: true;
  /** Bytes that it has now; undefined where all of it can be read only once, from its beginning. */
  size(): number | undefined;
  /** @param signal ends the reading, also where it waits for more */
  readFrom(start: number, signal?: AbortSignal): Promise<InputReader>;
  /**
   * Fills `target` with the bytes from `start` on and returns how many there were; of an input with a size, as often as one
   * likes. Whether it has changed meanwhile is for the caller to see, by a checksum.
   */
  readRange(target: Buffer, start: number): Promise<number>;
  /**
   * What can be told of it without reading it: something that differs where its content may, and when it was written. Absent
   * where all of it can be read only once.
   */
  look?(): { readonly version: string; readonly modified: Date };
  /** Looks at it anew, after it was found to have changed; absent: it is not read again. */
  renew?(): Promise<void>;
}

/** Bytes that follow each other, written where the caller wants them. A plain object, whose functions need no `this`. */
export interface InputReader {
  /** How many bytes there are; absent where text is not to be read once more by ranges, but held until it is sent. */
  readonly size?: number;
  /** Whether they may have been written to since the reader began. Absent: they were read at once, or cannot change. */
  readonly wasTouched?: () => boolean;
  /** All of them, where they are in memory already. */
  readonly whole?: Buffer;
  /** Fills `target` from the start; returns the number of bytes written, 0 at the end. */
  read(target: Buffer): Promise<number>;
  /** Ends a read that waits, too. */
  close(): Promise<void>;
}

/** What a file of this path ends in. */
export const endingsOf = (path: string): readonly string[] =>
  basename(path).toLowerCase().split('.').slice(1);

/** In bytes; undefined for what can be read only once, or is not there. */
export function sizeOf(input: Input): number | undefined {
  try {
    return input.size();
  } catch {
    return undefined;
  }
}

/** What differs where its content may; undefined for what can be read only once, or is not there. */
export function versionOf(input: Input): string | undefined {
  return sizeOf(input) === undefined ? undefined : input.look?.().version;
}
