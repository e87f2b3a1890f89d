import { Transform, type TransformCallback } from 'node:stream';

/**
 * More than ClickHouse writes when a statement fails after the first byte: 16 KiB of text at most, behind all else,
 * packed as the rows are.
 */
const heldBytes = 32 * 1024;

/**
 * Passes bytes on, but for the last of them until the end has come. If the answer breaks off there is no end, so that
 * the caller does not get ClickHouse's reason, which names files and tables. Pieces are not copied.
 */
export class HoldBack extends Transform {
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
