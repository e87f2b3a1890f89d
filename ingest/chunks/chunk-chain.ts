import { createHash, type Hash } from 'node:crypto';

/**
 * Names the chunks of an input, each by its content and by all that is before it: equal records at two places are two
 * chunks, and what is known of a chunk holds only for inputs that are alike up to its end.
 */
export class ChunkChain {
  readonly #fingerprint: string;
  /** sha256 of the input up to here. */
  #before: Buffer;

  /**
   * @param salt what makes the same bytes other ones altogether
   * @param fingerprint what tells chunks of the same bytes apart: how their columns are read
   * @param header what belongs to every chunk
   */
  constructor(salt: string, fingerprint: string, header: Buffer) {
    this.#fingerprint = fingerprint;
    this.#before = createHash('sha256').update(salt).update('\n').update(header).digest();
  }

  /** How the ledger finds the chunks that begin here: sha256, hex, of all that is before and of what comes first. */
  head(first: Buffer): string {
    return this.begin().update(first).digest('hex');
  }

  /** Takes in the content of the next chunk; its digest tells the content, hex, however it is read. */
  begin(): Hash {
    return createHash('sha256').update(this.#before);
  }

  /** The name of a chunk of this content. */
  nameOf(content: string): string {
    if (this.#fingerprint === '') return content;
    return createHash('sha256').update(content).update(this.#fingerprint).digest('hex');
  }

  /** Goes on behind a chunk of this content. */
  pass(content: string): void {
    this.#before = Buffer.from(content, 'hex');
  }
}
