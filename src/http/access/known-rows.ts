import { stateOf, type TableState, type Versioned } from '../../accounts/versions.ts';

/** Changes are read again for this long, in case a row became visible after one with a later version. */
const overlapSeconds = 60;

/** The rows of a table in memory, which follow the table. */
export class KnownRows<Row extends Versioned> {
  readonly #keyOf: (row: Row) => string;
  #rows = new Map<string, Row>();
  /** Of the digests of all rows: a change costs what has changed, however many rows there are. */
  #sum = 0n;
  #latest = '';

  constructor(keyOf: (row: Row) => string) {
    this.#keyOf = keyOf;
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  /**
   * Reads what has changed: the latest rows, or all of them if those do not explain the state, because one was deleted
   * or its version is that of another clock.
   * @param read the rows of this version and later ones, or all
   */
  async follow(state: TableState, read: (since: string | undefined) => Promise<Row[]>): Promise<void> {
    if (state === this.#state) return;
    this.#add(await read(this.#since()));
    if (state === this.#state) return;
    const all = await read(undefined);
    this.#rows = new Map();
    this.#sum = 0n;
    this.#latest = '';
    this.#add(all);
  }

  get #state(): TableState {
    return stateOf(this.#rows.size, this.#sum);
  }

  #add(rows: readonly Row[]): void {
    for (const row of rows) {
      const key = this.#keyOf(row);
      this.#sum += BigInt(row.digest) - BigInt(this.#rows.get(key)?.digest ?? 0);
      this.#rows.set(key, row);
      if (row.version > this.#latest) this.#latest = row.version;
    }
  }

  /** The latest version minus the overlap, to the second; undefined while there are no rows. */
  #since(): string | undefined {
    if (this.#latest === '') return undefined;
    const time = Date.parse(`${this.#latest.slice(0, 19).replace(' ', 'T')}Z`) - overlapSeconds * 1000;
    return new Date(time).toISOString().slice(0, 19).replace('T', ' ');
  }
}
