import { open, stat } from 'node:fs/promises';
import { readable, readInput } from './expand-files.ts';
import { type Compression, InputError } from './file-format.ts';

/** Bytes one after the other, written where they are wanted. */
export interface ByteSource {
  /** How many there are, where that is known before they are read. */
  readonly size?: number;
  /** Fills a part of the target from its begin; returns how much, 0 at the end. */
  read(target: Buffer): Promise<number>;
  close(): Promise<void>;
}

/** More than one read brings at a time is of no use. */
const readBytes = 8 << 20;

/**
 * The bytes of a file, unpacked. A plain file is read right into the target.
 * @param onBytes told how many bytes of the file itself were read
 * @param signal ends the reading, also where it waits for more
 * @throws {InputError} when the file cannot be read, or its packed data is damaged or cut off, at that point
 */
export async function openBytes(
  file: string,
  compression: Compression,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<ByteSource> {
  const unreadable = (cause: unknown) =>
    cause instanceof Error ? new InputError(`${file}: ${readable(cause)}`, { cause }) : cause;
  if (file === '-' || compression !== 'none') return bytesOf(readInput(file, compression, onBytes, signal));
  // Not opened to see what it is: whoever writes into a pipe would find it closed again.
  const found = await stat(file).catch((cause: unknown) => {
    throw unreadable(cause);
  });
  if (!found.isFile()) return bytesOf(readInput(file, compression, onBytes, signal));
  const handle = await open(file).catch((cause: unknown) => {
    throw unreadable(cause);
  });
  return {
    size: found.size,
    read: async (target) => {
      const length = Math.min(target.length, readBytes);
      const { bytesRead } = await handle.read(target, 0, length).catch((cause: unknown) => {
        throw unreadable(cause);
      });
      if (bytesRead > 0) onBytes(bytesRead);
      return bytesRead;
    },
    close: () => handle.close(),
  };
}

function bytesOf(source: AsyncGenerator<Buffer>): ByteSource {
  let rest: Buffer = Buffer.alloc(0);
  return {
    read: async (target) => {
      while (rest.length === 0) {
        const { value, done } = await source.next();
        if (done) return 0;
        rest = value;
      }
      const length = rest.copy(target);
      rest = rest.subarray(length);
      return length;
    },
    close: async () => {
      await source.return(undefined);
    },
  };
}
