import type { InputReader } from './input.ts';

const pieceBytes = 256 << 10;
/**
 * What is looked at to see what an input is: the first line must end within it for CR line ends to be seen. All of an input
 * of this size is shown at once.
 */
export const headBytes = 64 << 10;

/** Reads what is in memory. @param size absent: the text is held until it is sent */
export function readerOfBytes(bytes: Buffer, size?: number): InputReader {
  let unread = bytes;
  const read = async (target: Buffer) => {
    const length = unread.copy(target);
    unread = unread.subarray(length);
    return length;
  };
  return {
    ...(bytes.length <= headBytes && { whole: bytes }),
    ...(size !== undefined && { size }),
    read,
    close: async () => {},
  };
}

/** Reads pieces as they come. @param close lets go of what they are made from */
export function readerOf(pieces: AsyncIterable<Buffer>, close: () => Promise<void>): InputReader {
  const iterator = pieces[Symbol.asyncIterator]();
  let unread: Buffer = Buffer.alloc(0);
  return {
    read: async (target) => {
      while (unread.length === 0) {
        const { value, done } = await iterator.next();
        if (done) return 0;
        unread = value;
      }
      const length = unread.copy(target);
      unread = unread.subarray(length);
      return length;
    },
    close: async () => {
      await close();
      await iterator.return?.();
    },
  };
}

/** Reads until a target is full or there is nothing more; returns the number of bytes. */
export async function fill(target: Buffer, read: InputReader['read']): Promise<number> {
  let length = 0;
  for (let bytes = -1; bytes !== 0 && length < target.length; length += bytes) {
    bytes = await read(target.subarray(length));
  }
  return length;
}

export async function* piecesOf(reader: InputReader): AsyncGenerator<Buffer> {
  for (;;) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, (reader.size ?? pieceBytes) + 1));
    const bytes = await reader.read(piece);
    if (bytes === 0) return;
    yield piece.subarray(0, bytes);
  }
}
