import { stateOf, type TableState, type Versioned } from '../../accounts/versions.ts';

/** Changes are read again for this long, in case a row became visible after one with a later version. */
const overlapSeconds = 60;

/** The rows of a table in memory, which follow the table. */
export class KnownRows<Row extends Versioned> {
  readonly #keyOf: (row: Row) => string;
  #rows = new Map<string, Row>();
  #state: TableState = stateOf([]);

  constructor(keyOf: (row: Row) => string) {
    this.#keyOf = keyOf;
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  values(): Iterable<Row> {
    return this.#rows.values();
  }

  /**
   * Reads what has changed: the latest rows, or all of them if those do not explain the state, because one was deleted
   * or its version is that of another clock.
   * @param read the rows of this version and later ones, or all
   * @returns whether anything has
   */
  async follow(state: TableState, read: (since: string | undefined) => Promise<Row[]>): Promise<boolean> {
    if (state === this.#state) return false;
    this.#add(await read(this.#latest()));
    if (state === this.#state) return true;
    const all = await read(undefined);
    this.#rows = new Map();
    this.#add(all);
    return true;
  }

  #add(rows: readonly Row[]): void {
    for (const row of rows) this.#rows.set(this.#keyOf(row), row);
    this.#state = stateOf(this.#rows.values());
  }

  /** The latest version minus the overlap, to the second; undefined while there are no rows. */
  #latest(): string | undefined {
    let latest: string | undefined;
    for (const { version } of this.#rows.values())
      if (latest === undefined || version > latest) latest = version;
    if (latest === undefined) return undefined;
    const time = Date.parse(`${latest.slice(0, 19).replace(' ', 'T')}Z`) - overlapSeconds * 1000;
    return new Date(time).toISOString().slice(0, 19).replace('T', ' ');
  }
}
