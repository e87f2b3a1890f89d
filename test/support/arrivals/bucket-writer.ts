import { setTimeout as delay } from 'node:timers/promises';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Store } from '../../../clickhouse/client.ts';
import type { ObjectStorage } from '../object-storage.ts';
import type { Dice } from '../round-files.ts';
import type { Content } from './contents.ts';

const packings = {
  '': (bytes: Buffer) => bytes,
  '.gz': (bytes: Buffer) => gzipSync(bytes),
  '.br': (bytes: Buffer) => brotliCompressSync(bytes),
};

interface Held {
  readonly content: Content;
  readonly version: number;
}

interface WriterOptions {
  readonly storage: ObjectStorage;
  readonly folder: string;
  readonly store: Store;
  readonly dice: Dice;
  /** A content that is new, or came before. */
  readonly any: () => Promise<Content>;
}

const changes = [
  'grow',
  'copy',
  'rename',
  'overwrite',
  'overwrite',
  'delete',
  'delete',
  'delete loaded',
] as const;

/** Adds, overwrites, renames, copies and deletes objects below a folder of a bucket. */
export class BucketWriter {
  readonly #objects = new Map<string, Held>();
  readonly #options: WriterOptions;
  #named = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  async change(): Promise<void> {
    const { dice, any } = this.#options;
    const key = [...this.#objects.keys()][dice.below(this.#objects.size || 1)];
    const held = key === undefined ? undefined : this.#objects.get(key);
    const change = dice.one(['add', 'add', ...changes]);
    if (change === 'add' || !key || !held) return this.add(await any());
    const { content } = held;
    if (change === 'grow' && (await this.#isBegun(key, content)))
      return this.#put(key, content, content.versions.length - 1);
    if (change === 'copy' || change === 'grow') return this.add(content);
    if (change === 'overwrite') {
      const other = await any();
      // Other records of another format would need another name.
      if (other.format === content.format) return this.#put(key, other, 0);
      return this.add(other);
    }
    if (change === 'rename') await this.add(content);
    if (change === 'delete loaded' && !(await this.#isLoadedSoon(content))) return;
    await this.#remove(key);
  }

  /** Puts a content under a new key. */
  async add(content: Content): Promise<void> {
    const { dice, folder } = this.#options;
    const packing = content.format === 'parquet' ? '' : dice.one(['', '', '.gz', '.br'] as const);
    const key = `${folder}${dice.below(99)}/${++this.#named}.${content.format}${packing}`;
    await this.#put(key, content, content.shown < 0 ? dice.below(content.versions.length) : content.shown);
  }

  /** Of these contents those whose last object went before the ledger had them. */
  async lost(contents: readonly Content[]): Promise<Content[]> {
    const lost: Content[] = [];
    for (const content of contents.filter(({ shown, settled }) => settled < shown)) {
      const lies = [...this.#objects.values()].some(
        (each) => each.content === content && each.version === content.shown,
      );
      if (!lies && !(await content.isLoaded(this.#options.store))) lost.push(content);
    }
    return lost;
  }

  async removeAll(): Promise<void> {
    for (const key of [...this.#objects.keys()]) await this.#remove(key);
  }

  /**
   * Whether the ledger has all that other objects show of a content. A beginning that comes behind the whole of it, as one
   * chunk, is another content.
   */
  async #isBegun(key: string, content: Content): Promise<boolean> {
    const others = [...this.#objects].filter(([other, held]) => other !== key && held.content === content);
    const shown = others.map(([, { version }]) => version);
    return shown.length === 0 || content.isLoaded(this.#options.store, Math.min(...shown));
  }

  async #put(key: string, content: Content, version: number): Promise<void> {
    const shown = content.show(version);
    const before = this.#objects.get(key)?.content;
    if (before && before !== content) before.note(`${key} is overwritten`);
    content.note(`${key} has version ${shown}`);
    const packing = /\.(gz|br)$/.exec(key)?.[0] as keyof typeof packings | undefined;
    await this.#options.storage.put(key, packings[packing ?? ''](content.bytesOf(shown)));
    this.#objects.set(key, { content, version: shown });
  }

  async #remove(key: string): Promise<void> {
    this.#objects.get(key)?.content.note(`${key} goes`);
    await this.#options.storage.remove(key);
    this.#objects.delete(key);
  }

  async #isLoadedSoon(content: Content): Promise<boolean> {
    for (let n = 0; n < 5; n++) {
      if (await content.isLoaded(this.#options.store)) return true;
      await delay(200);
    }
    return false;
  }
}
