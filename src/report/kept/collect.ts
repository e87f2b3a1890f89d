import type { Readable } from 'node:stream';

/** A larger answer is not kept. */
const maxAnswerBytes = 1024 * 1024;

/**
 * All bytes of a body; undefined, and the body destroyed, as soon as they are too many.
 * @throws when the body breaks off, naming the statement: ClickHouse's query log says why
 */
export async function collect(body: Readable, statement: string): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxAnswerBytes) return undefined;
      pieces.push(piece);
    }
  } catch (cause) {
    throw brokeOff(statement, cause);
  }
  return Buffer.concat(pieces, bytes);
}

export function brokeOff(statement: string, cause: unknown): Error {
  return new Error(`statement ${statement} broke off`, { cause });
}
