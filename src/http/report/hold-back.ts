import { once } from 'node:events';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { brokeOff } from '../../report/kept/collect.ts';

/**
 * More than ClickHouse writes when a statement fails after the first byte: 16 KiB of text at most, behind all else,
 * packed as the rows are.
 */
const heldBytes = 32 * 1024;

/**
 * Streams the answer but holds back its last bytes until ClickHouse has finished. If the answer breaks off, these bytes
 * are dropped, so that the caller does not get ClickHouse's reason, which names files and tables. Pieces are not copied.
 * @returns when the first bytes may be sent: a failure before that can still become a problem
 * @throws when the answer breaks off before that, naming the statement: ClickHouse's query log says why
 */
export async function heldBack(body: Readable, statement: string): Promise<Readable> {
  const ignored = () => undefined;
  // A failure reaches the reader of the returned stream, even if it happens before anybody reads.
  const sendable = pipeline(body, new HoldBack(), ignored).on('error', ignored);
  try {
    await once(sendable, 'readable');
  } catch (cause) {
    throw brokeOff(statement, cause);
  }
  return sendable;
}

class HoldBack extends Transform {
  readonly #held: Buffer[] = [];
  #bytes = 0;

  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#held.push(piece);
    this.#bytes += piece.length;
    let [first] = this.#held;
    while (first && this.#bytes - first.length >= heldBytes) {
      this.#held.shift();
      this.#bytes -= first.length;
      this.push(first);
      [first] = this.#held;
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    for (const piece of this.#held) this.push(piece);
    done();
  }
}
