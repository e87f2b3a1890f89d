import type { InputReader } from './input.ts';

const pieceBytes = 256 << 10;

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

export async function* piecesOf(reader: InputReader): AsyncGenerator<Buffer> {
  for (;;) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, (reader.size ?? pieceBytes) + 1));
    const bytes = await reader.read(piece);
    if (bytes === 0) return;
    yield piece.subarray(0, bytes);
  }
}
