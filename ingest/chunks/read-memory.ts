interface Block {
  readonly bytes: Buffer;
  /** Bodies in it that are not released yet. */
  held: number;
}

/** Enough for most small files, where it is not known how much there is to read. */
const firstBytes = 2 << 20;
const nothing = Buffer.alloc(0);

/**
 * The memory into which a file is read. What is taken stays in it until it is released, so that a file of any size
 * takes as many blocks as there are chunks on their way. Left to the garbage collector, they would be twice as many.
 */
export class ReadMemory {
  #block: Block = { bytes: nothing, held: 0 };
  #spare: Block[] = [];
  /** The largest that was asked for: blocks do not shrink. */
  #wanted = 0;

  get bytes(): Buffer {
    return this.#block.bytes;
  }

  /** Keeps the current memory as it is until the release. */
  hold(): () => void {
    const block = this.#block;
    block.held++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      block.held--;
      if (block !== this.#block) this.#keep(block);
    };
  }

  /**
   * Moves the bytes from `begin` to `end` to the beginning of other memory.
   * @param wanted how much it is to hold in the end
   * @param isThere whether there is so much to read; if nobody knows, the memory grows with what is read
   * @returns how many bytes were moved
   */
  move(begin: number, end: number, wanted: number, isThere: boolean): number {
    this.#wanted = Math.max(this.#wanted, wanted);
    const old = this.#block;
    const grown = Math.min(this.#wanted, Math.max(firstBytes, 2 * old.bytes.length));
    const length = isThere ? this.#wanted : grown;
    const spare = this.#spare.findIndex(({ bytes }) => bytes.length >= length);
    this.#block = this.#spare.splice(spare, spare < 0 ? 0 : 1)[0] ?? {
      bytes: Buffer.allocUnsafe(length),
      held: 0,
    };
    const moved = old.bytes.copy(this.#block.bytes, 0, begin, end);
    this.#keep(old);
    return moved;
  }

  #keep(block: Block): void {
    if (block.held === 0 && block.bytes.length >= this.#wanted) this.#spare.push(block);
  }
}
