import { endingsOf, type Input, type InputReader } from '../input/input.ts';
import { readerOf, readerOfBytes } from '../input/pieces.ts';
import type { Bucket } from './bucket.ts';
import type { ObjectVersion } from './service.ts';

/** All of an object of at most this size is asked for at once. */
const smallBytes = 4 << 20;
/** The end of a larger one is asked for at once: it holds the footer of most Parquet files. */
const tailBytes = 1 << 20;

/** An object of a bucket, in the version in which it was found. */
export class ObjectInput implements Input {
  /** Its address. */
  readonly name: string;
  readonly #bucket: Bucket;
  #object: ObjectVersion;

  constructor(bucket: Bucket, object: ObjectVersion) {
    // A key may hold what would end a line of a message.
    this.name = bucket.name + object.key.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, encodeURIComponent);
    this.#bucket = bucket;
    this.#object = object;
  }

  get endings(): readonly string[] {
    return endingsOf(this.#object.key);
  }

  look(): { version: string; modified: Date } {
    return { version: this.#object.etag, modified: this.#object.modified };
  }

  size(): number {
    return this.#object.size;
  }

  /** Its reader has no size: so text is held until it is sent, and comes over the network once. */
  async readFrom(start: number, signal?: AbortSignal): Promise<InputReader> {
    if (this.#object.size <= smallBytes) return readerOfBytes((await this.#piece(0, signal)).subarray(start));
    const stop = new AbortController();
    const own = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    return readerOf(this.#bucket.bytes(this.#object, start, this.#object.size, own), async () =>
      stop.abort(),
    );
  }

  async readRange(target: Buffer, start: number): Promise<number> {
    const { size } = this.#object;
    const from = size <= smallBytes ? 0 : size - tailBytes;
    if (start >= from) return (await this.#piece(from)).subarray(start - from).copy(target);
    return this.#copy(target, start);
  }

  async renew(): Promise<void> {
    const found = await this.#bucket.find(this.#object.key);
    if (!found) throw new Error('there is no such object any more');
    this.#object = found;
  }

  /** All of it from a place on. */
  async #piece(start: number, signal?: AbortSignal): Promise<Buffer> {
    const { key, etag, size } = this.#object;
    const name = `${start} ${etag} ${key}`;
    const known = this.#bucket.kept.get(name);
    if (known) return known;
    const piece = Buffer.allocUnsafeSlow(size - start);
    await this.#copy(piece, start, signal);
    this.#bucket.kept.set(name, piece);
    return piece;
  }

  async #copy(target: Buffer, start: number, signal?: AbortSignal): Promise<number> {
    let length = 0;
    for await (const bytes of this.#bucket.bytes(this.#object, start, start + target.length, signal)) {
      length += bytes.copy(target, length);
    }
    return length;
  }
}
