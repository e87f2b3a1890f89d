import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { select } from '../../../clickhouse/client.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import { chunkBytes } from '../chunk-options.ts';
import type { Dice } from '../round-files.ts';
import { type Book, bitsOf, unitBytes, type Version } from './books.ts';
import type { Part } from './judge.ts';
import { type CommandGround, perform } from './perform.ts';

/** What writers know of a book. */
class Shelf {
  readonly book: Book;
  /** Which version is loaded or taken back now; a replacement moves on, and the one before is not loaded again. */
  version = 0;
  /** That a replacement was begun and has not said that it is done: the load that it replaces. */
  replacing: string | undefined;
  /** When something ended of which nobody knows how, and nothing has been done since. */
  unknownSince = Number.NaN;
  loading = 0;
  isTaken = false;

  constructor(book: Book) {
    this.book = book;
  }

  get isOpen(): boolean {
    return !Number.isNaN(this.unknownSince);
  }
}

/** All writers of a round: they load, take back and replace, and write down what they did. */
export class Writers {
  readonly #ground: CommandGround;
  readonly #shelves: readonly Shelf[];
  #names = 0;

  constructor(ground: CommandGround, books: readonly Book[]) {
    this.#ground = ground;
    this.#shelves = books.map((book) => new Shelf(book));
  }

  /** One command. */
  async act(dice: Dice): Promise<void> {
    const free = this.#shelves.filter(({ isTaken }) => !isTaken);
    const shelf = free[dice.below(free.length)];
    const what = dice.below(100);
    if (!shelf || what < 6) return this.#rebuild();
    if (shelf.replacing !== undefined) return this.#alone(shelf, () => this.#replace(shelf, dice));
    if (what < 60 || shelf.loading > 0) {
      await this.#load(shelf, dice);
      return;
    }
    if (what < 85 || shelf.isOpen || shelf.version > 0)
      return this.#alone(shelf, () => this.#takeBack(shelf));
    return this.#alone(shelf, () => this.#replace(shelf, dice));
  }

  /** Leaves nothing of which nobody knows how it ended. @throws if commands fail in peace */
  async settle(dice: Dice): Promise<void> {
    for (const shelf of this.#shelves) {
      for (let attempt = 1; shelf.isOpen; attempt++) {
        const told =
          shelf.replacing === undefined ? await this.#load(shelf, dice) : await this.#replace(shelf, dice);
        if (attempt === 4) throw new Error(`a command fails in peace: ${told}`);
      }
    }
  }

  async #rebuild(): Promise<void> {
    await this.#ground.session.run(['rebuild'], this.#ground.env());
  }

  async #alone<T>(shelf: Shelf, work: () => Promise<T>): Promise<void> {
    shelf.isTaken = true;
    await work().finally(() => {
      shelf.isTaken = false;
    });
  }

  async #load(shelf: Shelf, dice: Dice): Promise<string> {
    const version = shelf.book.versions[shelf.version] as Version;
    const path = await this.#file(shelf, version);
    const bytes = unitBytes * dice.one([1, 1, 2, 8]);
    shelf.loading++;
    const parts = version.units.map(({ bit }) => ({ adds: bit, removes: 0 }));
    return this.#command(shelf, ['ingest', 'events', '--quiet', chunkBytes, `${bytes}`, path], parts).finally(
      () => {
        shelf.loading--;
      },
    );
  }

  /** All that was loaded of a book. */
  async #takeBack(shelf: Shelf): Promise<void> {
    const { units } = shelf.book.versions[shelf.version] as Version;
    const loads = await this.#loadsOf(shelf);
    const last = loads.at(-1);
    if (last === undefined) return;
    for (const load of loads.slice(0, -1)) {
      const parts = units.map(({ bit }) => ({ adds: 0, removes: bit }));
      await this.#command(shelf, ['unload', load], parts, 'some');
    }
    // One load that has all of it goes in one step.
    const isOne = loads.length === 1 && !shelf.isOpen;
    const parts = isOne ? [bitsOf(units)] : units.map(({ bit }) => bit);
    await this.#command(
      shelf,
      ['unload', last],
      parts.map((removes) => ({ adds: 0, removes })),
    );
  }

  /** The next version in the place of the one that is loaded, if one load has all of it. */
  async #replace(shelf: Shelf, dice: Dice): Promise<string> {
    const [old, next] = shelf.book.versions as [Version, Version];
    if (shelf.replacing === undefined) {
      const loads = await this.#loadsOf(shelf);
      if (loads.length !== 1 || shelf.isOpen) return '';
      shelf.replacing = loads[0];
      shelf.version = 1;
    }
    const path = await this.#file(shelf, next);
    const bytes = unitBytes * dice.one([1, 8]);
    const args = [
      'ingest',
      'events',
      '--quiet',
      chunkBytes,
      `${bytes}`,
      '--replaces',
      `${shelf.replacing}`,
      path,
    ];
    const told = await this.#command(shelf, args, [{ removes: bitsOf(old.units), adds: bitsOf(next.units) }]);
    if (!shelf.isOpen) shelf.replacing = undefined;
    return told;
  }

  /** @param how whether it has to have done `all` of these parts when it is done */
  async #command(
    shelf: Shelf,
    args: readonly string[],
    parts: readonly Part[],
    how: 'all' | 'some' = 'all',
  ): Promise<string> {
    const { account, name } = shelf.book;
    const about = { account, subject: `${account}/${name}`, how };
    const { begin, end, isDone, told } = await perform(this.#ground, about, args, parts);
    if (!isDone) shelf.unknownSince = end;
    else if (how === 'all' && shelf.unknownSince <= begin) shelf.unknownSince = Number.NaN;
    return told;
  }

  /** A name for each command, by which its load is found. */
  async #file(shelf: Shelf, version: Version): Promise<string> {
    const path = join(
      this.#ground.folder,
      `${shelf.book.account.replaceAll('/', '-')}-${version.name}.${++this.#names}.ndjson`,
    );
    await writeFile(path, version.text);
    return path;
  }

  async #loadsOf({ book, version }: Shelf): Promise<string[]> {
    const { session, folder } = this.#ground;
    const prefix = join(folder, `${book.account.replaceAll('/', '-')}-${book.versions[version]?.name}.`);
    const query = `SELECT load_id AS load FROM loads FINAL
      WHERE startsWith(file, {prefix:String}) AND kind IN ('events', 'replacement') AND state != 'unloaded' ORDER BY turn`;
    const rows = await retrying(() => select<{ load: string }>(session.store, query, { prefix }));
    return rows.map(({ load }) => load);
  }
}
