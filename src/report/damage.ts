import {
  type DamagedPart,
  damagedPartsQuery,
  ofDatabase,
  type Questioned,
  requireWhole,
} from '../../clickhouse/consistency/damaged-parts.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import type { Plan } from './plan.ts';

/** ClickHouse takes longer to start again: from a kill to the next answer 480 ms were measured, on an empty store. */
const noRestartMs = 200;
/** A state that took longer does not tell: ClickHouse may have started on the way and run for longer than asked. */
const lateMs = 2_000;

export interface DamageOptions {
  readonly reader: Reader;
  readonly database: string;
  /** Called once for each part. */
  readonly onFound: (part: DamagedPart) => void;
}

/**
 * The parts that ClickHouse goes on without since it started. They are asked for only when it may have started since: the
 * state of the store tells that, and otherwise only the time that an answer took leaves it open.
 */
export class Damage {
  readonly #options: DamageOptions;
  #parts: readonly DamagedPart[] = [];
  /** The shards that told; those of which nobody has heard may have started. */
  #shards: string | undefined;
  /** When ClickHouse was last asked for damaged parts, and when anything last showed that it has not started since. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #knownAt = Number.NEGATIVE_INFINITY;
  #asking: { readonly since: number; readonly done: Promise<void> } | undefined;

  constructor(options: DamageOptions) {
    this.#options = options;
  }

  /** For how many seconds ClickHouse must have run not to have started since it was asked; they are whole, so with some more. */
  get askedBefore(): string {
    return String(Math.min(2 ** 31, Math.ceil((performance.now() - this.#askedAt) / 1000) + 3));
  }

  /** @param since when the state was asked for */
  async follow(
    since: number,
    state: { readonly mayHaveRestarted: boolean; readonly shards: ReadonlySet<number> },
  ): Promise<void> {
    const isLate = performance.now() - since > lateMs;
    const isKnown = this.#parts.length === 0 && listed(state.shards) === this.#shards;
    if (isLate || state.mayHaveRestarted || !isKnown) await this.#ask();
    else this.#knownAt = Math.max(this.#knownAt, since);
  }

  /** @throws {DamagedFigures} when what is known to be damaged may have rows that the answer needs */
  refuse(questioned: Questioned): void {
    requireWhole(this.#parts, questioned);
  }

  /**
   * To be called when an answer begins to arrive, before anybody sees it: ClickHouse finds damage only when it starts.
   * @throws {DamagedFigures} when a part that was set aside may have rows that the answer needs
   */
  async requireWhole(questioned: Questioned): Promise<void> {
    if (performance.now() - this.#knownAt > noRestartMs) await this.#ask();
    this.refuse(questioned);
  }

  /** What work finds, if nothing was damaged before and after it. @throws {DamagedFigures} */
  async whole<Result>(questioned: Questioned, work: () => Promise<Result>): Promise<Result> {
    await this.requireWhole(questioned);
    const result = await work();
    await this.requireWhole(questioned);
    return result;
  }

  #ask(): Promise<void> {
    const since = performance.now();
    if (this.#asking && since - this.#asking.since < noRestartMs) return this.#asking.done;
    const done = this.#read(since);
    this.#asking = { since, done };
    return done;
  }

  async #read(since: number): Promise<void> {
    const { reader, database, onFound } = this.#options;
    try {
      const rows = await reader.rows<DamagedPart & { readonly shard: number }>({
        query: damagedPartsQuery,
        params: ofDatabase(database),
        // What is on a shard that is down no report reads.
        settings: { max_threads: 1, priority: 1, log_queries: 0, skip_unavailable_shards: 1 },
      });
      const known = new Set(this.#parts.map(({ table, part }) => `${table} ${part}`));
      this.#parts = rows.filter(({ table }) => table !== '');
      this.#shards = listed(new Set(rows.map(({ shard }) => shard)));
      this.#askedAt = since;
      this.#knownAt = since;
      for (const part of this.#parts) if (!known.has(`${part.table} ${part.part}`)) onFound(part);
    } finally {
      if (this.#asking?.since === since) this.#asking = undefined;
    }
  }
}

const listed = (shards: ReadonlySet<number>): string => [...shards].sort((a, b) => a - b).join();

/** What a report is answered from. */
export function questionedBy({ days, compared, past, byLoad }: Plan): Questioned {
  return {
    days: [days, ...(compared ? [compared.days] : [])],
    ledger: past !== undefined || byLoad !== undefined,
  };
}
