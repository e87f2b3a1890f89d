/** Reads pieces by exact numbers of bytes. */
export class ExactBytes {
  readonly #pieces: AsyncIterator<Buffer>;
  #ahead: Buffer = Buffer.alloc(0);
  /** Bytes that were taken. */
  position = 0;

  constructor(pieces: AsyncIterable<Buffer>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  async ended(): Promise<boolean> {
    while (this.#ahead.length === 0) {
      const { value, done } = await this.#pieces.next();
      if (done) return true;
      this.#ahead = value;
    }
    return false;
  }

  /** The next bytes, fewer where there are no more. */
  async upTo(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = length; left > 0 && !(await this.ended()); ) {
      const part = this.#ahead.subarray(0, left);
      this.#ahead = this.#ahead.subarray(part.length);
      parts.push(part);
      left -= part.length;
    }
    const bytes = Buffer.concat(parts);
    this.position += bytes.length;
    return bytes;
  }
}
