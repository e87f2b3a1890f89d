import type { Readable } from 'node:stream';

/** A larger answer is not kept. */
export const maxAnswerBytes = 1024 * 1024;

/**
 * All bytes of a body; undefined, and the body destroyed, as soon as they are more than `maxBytes`.
 * @throws when the body breaks off, naming the statement: ClickHouse's query log says why
 */
export async function collect(
  body: Readable,
  maxBytes: number,
  statement: string,
): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxBytes) return undefined;
      pieces.push(piece);
    }
  } catch (cause) {
    throw new Error(`statement ${statement} broke off`, { cause });
  }
  return Buffer.concat(pieces, bytes);
}
