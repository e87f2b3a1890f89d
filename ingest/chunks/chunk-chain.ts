import { createHash, type Hash } from 'node:crypto';
import type { InputIdentity } from '../event/reading.ts';

/** The name of a chunk of this content that is read in this way. */
export function chunkName(content: string, fingerprint: string): string {
  if (fingerprint === '') return content;
  return createHash('sha256').update(content).update(fingerprint).digest('hex');
}

/** How the ledger finds what was sent of a channel from a record on: sha256, hex. */
export function channelHead(channel: string, position: number): string {
  return sha256(`channel ${channel} ${position}`).toString('hex');
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * Names the chunks of an input, each by its content and by all that is before it: equal records at two places are two
 * chunks, and what is known of a chunk holds only for inputs that are alike up to its end. In a channel the number of its
 * first record stands for all that is before it.
 */
export class ChunkChain {
  readonly #fingerprint: string;
  readonly #channel: string | undefined;
  /** How the first chunk is found, whatever it holds; undefined behind it, and where its beginning tells. */
  #head: string | undefined;
  /** sha256 of the input up to here. */
  #before: Buffer;

  /** @param header what belongs to every chunk */
  constructor({ salt, key, channel, fingerprint }: InputIdentity, header: Buffer) {
    this.#fingerprint = fingerprint;
    this.#channel = channel?.name;
    const place = channel && channelHead(channel.name, channel.position);
    this.#head = place ?? (key === undefined ? undefined : sha256(`key ${key}`).toString('hex'));
    this.#before = createHash('sha256')
      .update(place ?? salt)
      .update('\n')
      .update(header)
      .digest();
  }

  /** The lock of loads of what begins so: that of the head, or one for all pieces of a channel. */
  lock(first: Buffer): string {
    if (this.#channel === undefined) return this.head(first);
    return sha256(`channel ${this.#channel}`).toString('hex');
  }

  /** How the ledger finds the chunks that begin here: sha256, hex, of all that is before and of what comes first. */
  head(first: Buffer): string {
    return this.#head ?? this.begin().update(first).digest('hex');
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
    this.#head = undefined;
  }
}
