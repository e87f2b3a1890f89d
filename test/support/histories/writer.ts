import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { chunkBytes } from '../chunk-options.ts';
import type { Dice } from '../round-files.ts';
import { type Book, bitsOf, corrected, ownDays, unitBytes, type Version } from './books.ts';
import type { Part } from './judge.ts';
import { type CommandGround, type Performed, perform } from './perform.ts';

/** What writers know of a book. */
class Shelf {
  readonly book: Book;
  /** Which version is loaded or taken back now: a replacement moves on, and back when all of it is taken back. */
  version = 0;
  /** What a replacement was to replace, as options; undefined when none was begun, or it has said that it is done. */
  replacing: readonly string[] | undefined;
  /** The command of a replay; undefined when none was begun, or it has said that it is done. */
  replaying: readonly string[] | undefined;
  /** When the last command ended that did not say what it did; NaN once a later one is done. */
  unknownSince = Number.NaN;
  loading = 0;
  isTaken = false;
  /** Whether a load of it was begun, and not all taken back since. */
  hasLoads = false;

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
    if (!shelf || what < 4) return this.#maintain(['rebuild']);
    if (what < 8) return this.#prune(dice);
    if (shelf.replacing !== undefined) return this.#alone(shelf, () => this.#replace(shelf, dice));
    if (shelf.replaying !== undefined) return this.#alone(shelf, () => this.#replay(shelf));
    if (what < 45 || shelf.loading > 0 || !shelf.hasLoads) {
      await this.#load(shelf, dice);
      return;
    }
    if (what < 65 && !shelf.isOpen && this.#versionOf(shelf).rejected.length > 0) {
      return this.#alone(shelf, () => this.#replay(shelf));
    }
    if (what < 82 || (shelf.isOpen && !shelf.book.isAlone) || shelf.version > 0)
      return this.#alone(shelf, () => this.#takeBack(shelf));
    return this.#alone(shelf, () => this.#replace(shelf, dice));
  }

  /** Repeats what was interrupted until it is done. @throws if commands fail in peace */
  async settle(dice: Dice): Promise<void> {
    for (const shelf of this.#shelves) {
      const isOpen = () => shelf.isOpen || shelf.replaying !== undefined;
      for (let attempt = 1; isOpen(); attempt++) {
        const told = shelf.replaying
          ? await this.#replay(shelf)
          : shelf.replacing
            ? await this.#replace(shelf, dice)
            : await this.#load(shelf, dice);
        if (isOpen() && attempt === 6) throw new Error(`a command fails in peace: ${told}`);
        await delay(500);
      }
    }
  }

  /** Changes no report. */
  async #maintain(args: readonly string[]): Promise<void> {
    const { session, env, onStep } = this.#ground;
    const { code, signal } = await session.run(args, env());
    onStep(`${args.join(' ')}: ${signal ?? code}`);
  }

  /** Folds the events of the first month, or of the first two. */
  async #prune(dice: Dice): Promise<void> {
    const now = new Date();
    const months = (now.getUTCFullYear() - 2026) * 12 + now.getUTCMonth() - dice.one([1, 2]);
    if (months > 0) await this.#maintain(['prune', '--keep', `${months}mo`, '--anyway']);
  }

  async #alone<T>(shelf: Shelf, work: () => Promise<T>): Promise<void> {
    shelf.isTaken = true;
    await work().finally(() => {
      shelf.isTaken = false;
    });
  }

  async #load(shelf: Shelf, dice: Dice): Promise<string> {
    const version = this.#versionOf(shelf);
    const path = await this.#file(shelf, version);
    const bytes = unitBytes * dice.one([1, 1, 2, 8]);
    shelf.loading++;
    shelf.hasLoads = true;
    const parts = version.units.map(({ bit }) => ({ adds: bit, removes: 0 }));
    const args = ['ingest', 'events', '--quiet', chunkBytes, `${bytes}`, path];
    const { told } = await this.#command(shelf, args, parts);
    shelf.loading--;
    return told;
  }

  /** All that was loaded of a book; where days of it were replaced, also the loads that are known to have had them. */
  async #takeBack(shelf: Shelf): Promise<void> {
    const { book } = shelf;
    const versions = book.isAlone ? book.versions : [this.#versionOf(shelf)];
    const bits = versions.flatMap(({ units, rejected }) => [...units, ...rejected]).map(({ bit }) => bit);
    const loads = (await this.#loadsOf(shelf)).map(({ load }) => load).toReversed();
    const last = loads.at(-1);
    if (last === undefined) return;
    let isGone = true;
    for (const load of loads.slice(0, -1)) {
      const parts = bits.map((removes) => ({ adds: 0, removes }));
      isGone = (await this.#command(shelf, ['unload', load], parts, 'some')).isDone && isGone;
    }
    // One load that has all of it goes in one step.
    const isOne = loads.length === 1 && !shelf.isOpen;
    const parts = isOne ? [bits.reduce((all, bit) => all | bit, 0)] : bits;
    const { isDone } = await this.#command(
      shelf,
      ['unload', last],
      parts.map((removes) => ({ adds: 0, removes })),
      isGone ? 'all' : 'some',
    );
    // The file that was replaced counts as new then.
    if (isDone && isGone) Object.assign(shelf, { version: 0, hasLoads: false });
  }

  /** What a load has rejected, corrected. */
  async #replay(shelf: Shelf): Promise<string> {
    const version = this.#versionOf(shelf);
    if (!shelf.replaying) {
      const [first] = await this.#loadsOf(shelf);
      if (!first) return '';
      const { code, stdout } = await this.#ground.session.run(['rejects', first.load, '--json']);
      if (code !== 0 || stdout.trim() === '') return '';
      shelf.replaying = ['replay', first.load, await this.#file(shelf, version, corrected(stdout))];
    }
    const parts = version.rejected.map(({ bit }) => ({ adds: bit, removes: 0 }));
    const { account, name } = shelf.book;
    // It completes no load.
    const about = { account, subject: `${account}/${name} replay` };
    const { isDone, told } = await perform(this.#ground, about, shelf.replaying, parts);
    if (isDone) shelf.replaying = undefined;
    return told;
  }

  /**
   * The next version in the place of the one that is loaded, if one load has all of it, or of all that is there on its days. Refused
   * where rows of it were replayed, or some of it is in doubt.
   */
  async #replace(shelf: Shelf, dice: Dice): Promise<string> {
    const [old, next] = shelf.book.versions as [Version, Version];
    if (shelf.replacing === undefined) {
      const [first, ...others] = await this.#loadsOf(shelf);
      if (!first) return '';
      if (shelf.book.isAlone) shelf.replacing = ['--replaces-days', ownDays, '--of', shelf.book.account];
      else if (shelf.isOpen || others.some(({ kind }) => kind !== 'replay')) return '';
      else shelf.replacing = ['--replaces', first.load];
      shelf.version = 1;
    }
    const path = await this.#file(shelf, next);
    const bytes = unitBytes * dice.one([1, 8]);
    const args = ['ingest', 'events', '--quiet', chunkBytes, `${bytes}`, ...shelf.replacing, path];
    const parts = [{ removes: bitsOf(old.units), adds: bitsOf(next.units) }];
    const { isDone, isRefused, told } = await this.#command(shelf, args, parts);
    if (isDone || isRefused) shelf.replacing = undefined;
    if (isRefused) shelf.version = 0;
    return told;
  }

  /** @param how whether it has to have done `all` of these parts when it is done */
  async #command(
    shelf: Shelf,
    args: readonly string[],
    parts: readonly Part[],
    how: 'all' | 'some' = 'all',
  ): Promise<Performed> {
    const { account, name } = shelf.book;
    const about = { account, subject: `${account}/${name}`, how };
    const performed = await perform(this.#ground, about, args, parts);
    const { begin, end, isDone, isRefused } = performed;
    if (isDone && how === 'all' && shelf.unknownSince <= begin) shelf.unknownSince = Number.NaN;
    if (!isDone && !isRefused) shelf.unknownSince = end;
    return performed;
  }

  /** A name for each command, by which its load is found. */
  async #file(shelf: Shelf, version: Version, text = version.text): Promise<string> {
    const path = join(
      this.#ground.folder,
      `${shelf.book.account.replaceAll('/', '-')}-${version.name}.${++this.#names}.ndjson`,
    );
    await writeFile(path, text);
    return path;
  }

  #versionOf({ book, version }: Shelf): Version {
    return book.versions[version] as Version;
  }

  async #loadsOf({ book, version }: Shelf): Promise<{ readonly load: string; readonly kind: string }[]> {
    const { session, folder } = this.#ground;
    const name = book.isAlone ? `${book.name}-` : `${book.versions[version]?.name}.`;
    const prefix = join(folder, `${book.account.replaceAll('/', '-')}-${name}`);
    const query = `SELECT load_id AS load, toString(kind) AS kind FROM loads FINAL
      WHERE (startsWith(file, {prefix:String}) AND kind != 'rebuild'
          OR file IN (SELECT concat('replay of ', load_id) FROM loads WHERE startsWith(file, {prefix:String})))
        AND state != 'unloaded' ORDER BY turn`;
    return session.select(query, { prefix });
  }
}
