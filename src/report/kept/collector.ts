import { Transform, type TransformCallback } from 'node:stream';

/** A larger answer is not kept. */
export const maxAnswerBytes = 1024 * 1024;

export interface CollectorOptions {
  readonly onTooLarge: () => void;
  /** Called with all bytes when the end has come; an answer that breaks off has no end. */
  readonly onWhole: (bytes: Buffer) => void;
}

/** Passes bytes on and collects them, ahead of a slow caller, so that those who wait for the answer do not wait for him. */
export class Collector extends Transform {
  readonly #options: CollectorOptions;
  #pieces: Buffer[] | undefined = [];
  #bytes = 0;

  constructor(options: CollectorOptions) {
    super({ readableHighWaterMark: maxAnswerBytes });
    this.#options = options;
  }

  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#bytes += piece.length;
    this.#pieces?.push(piece);
    if (this.#pieces && this.#bytes > maxAnswerBytes) {
      this.#pieces = undefined;
      this.#options.onTooLarge();
    }
    done(null, piece);
  }

  override _flush(done: TransformCallback): void {
    if (this.#pieces) this.#options.onWhole(Buffer.concat(this.#pieces));
    done();
  }
}
