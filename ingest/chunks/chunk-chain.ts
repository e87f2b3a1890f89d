import { createHash, type Hash } from 'node:crypto';
import type { InputIdentity } from '../event/reading.ts';

/** The name of a chunk of this content that is read in this way. */
export function chunkName(content: string, fingerprint: string): string {
  if (fingerprint === '') return content;
  return createHash('sha256').update(content).update(fingerprint).digest('hex');
}

/**
 * Names the chunks of an input, each by its content and by all that is before it: equal records at two places are two
 * chunks, and what is known of a chunk holds only for inputs that are alike up to its end.
 */
export class ChunkChain {
  readonly #fingerprint: string;
  /** How the first chunk is found; undefined behind it. */
  #key: string | undefined;
  /** sha256 of the input up to here. */
  #before: Buffer;

  /** @param header what belongs to every chunk */
  constructor({ salt, key, fingerprint }: InputIdentity, header: Buffer) {
    this.#fingerprint = fingerprint;
    this.#key = key;
    this.#before = createHash('sha256').update(salt).update('\n').update(header).digest();
  }

  /** How the ledger finds the chunks that begin here: sha256, hex, of all that is before and of what comes first. */
  head(first: Buffer): string {
    if (this.#key !== undefined) return createHash('sha256').update(`key ${this.#key}`).digest('hex');
    return this.begin().update(first).digest('hex');
  }

  /** Takes in the content of the next chunk; its digest tells the content, hex, however it is read. */
  begin(): Hash {
    return createHash('sha256').update(this.#before);
  }

  /** The name of a chunk of this content. */
  nameOf(content: string): string {
    return chunkName(content, this.#fingerprint);
  }

  /** Goes on behind a chunk of this content. */
  pass(content: string): void {
    this.#before = Buffer.from(content, 'hex');
    this.#key = undefined;
  }
}
