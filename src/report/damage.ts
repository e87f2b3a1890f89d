import { changesTable } from '../../catalog/breakdowns.ts';
import {
  type DamagedPart,
  damagedPartsQuery,
  historyTables,
  ofDatabase,
  type Questioned,
  requireWhole,
} from '../../clickhouse/consistency/damaged-parts.ts';
import { namesTables } from '../../clickhouse/names-tables.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { AsOfTooOld } from './as-of-moment.ts';
import { MonthNotClosed } from './closed-months.ts';
import { ownersOf } from './compile.ts';
import type { Plan } from './plan.ts';

/** ClickHouse takes longer to start again: from a kill to the next answer 480 ms were measured, on an empty store. */
const noRestartMs = 200;
/** A state that took longer does not tell: ClickHouse may have started on the way and run for longer than asked. */
const lateMs = 2_000;

export interface DamageOptions {
  readonly reader: Pick<Reader, 'rows'>;
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
  #parts: readonly Found[] = [];
  /** The shards that told; those of which nobody has heard may have started. */
  #shards: ReadonlySet<number> = new Set();
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
    const mayDiffer = this.hasParts || !isSame(state.shards, this.#shards);
    if (isLate || state.mayHaveRestarted || mayDiffer) await this.#ask();
    else this.#knownAt = Math.max(this.#knownAt, since);
  }

  /** Whether anything was damaged when it was last asked for. */
  get hasParts(): boolean {
    return this.#parts.length > 0;
  }

  /** What is damaged now: ClickHouse finds damage only when it starts. What it sets aside later has no rows of its own. */
  async parts(): Promise<readonly DamagedPart[]> {
    const calledAt = performance.now();
    const isOpen = () => calledAt - this.#knownAt > noRestartMs;
    if (isOpen()) await this.#ask();
    // A shard was skipped.
    if (isOpen()) await this.#ask();
    return this.#parts;
  }

  /** @throws {DamagedFigures} when what is known to be damaged may have rows that the answer needs */
  refuse(questioned: Questioned): void {
    requireWhole(this.#parts, questioned);
  }

  /**
   * To be called when an answer begins to arrive, before anybody sees it.
   * @throws {DamagedFigures} when a part that was set aside may have rows that the answer needs
   */
  async requireWhole(questioned: Questioned): Promise<void> {
    requireWhole(await this.parts(), questioned);
  }

  /** What work finds. What it cannot tell, a part that was set aside could have told. @throws {DamagedFigures} */
  async orDamaged<Result>(questioned: Questioned, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof MonthNotClosed || error instanceof AsOfTooOld) await this.requireWhole(questioned);
      throw error;
    }
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
      const rows = await reader.rows<Found>({
        query: damagedPartsQuery,
        params: ofDatabase(database),
        // What is on a shard that is down no report reads.
        settings: { max_threads: 1, priority: 1, log_queries: 0, skip_unavailable_shards: 1 },
      });
      // Another question that began later has its answer already.
      if (since < this.#askedAt) return;
      const known = new Set(this.#parts.map(({ table, part }) => `${table} ${part}`));
      const shards = new Set(rows.map(({ shard }) => shard));
      // A shard that was skipped may answer the report: what it last told stands, and it is asked once more.
      const kept = this.#parts.filter(({ shard }) => !shards.has(shard));
      this.#parts = [...rows.filter(({ table }) => table !== ''), ...kept];
      if ([...this.#shards].every((shard) => shards.has(shard))) this.#knownAt = since;
      this.#shards = shards;
      this.#askedAt = since;
      for (const part of this.#parts) if (!known.has(`${part.table} ${part.part}`)) onFound(part);
    } finally {
      if (this.#asking?.since === since) this.#asking = undefined;
    }
  }
}

const isSame = (some: ReadonlySet<number>, others: ReadonlySet<number>): boolean =>
  some.size === others.size && [...some].every((shard) => others.has(shard));

/** With the number of its shard. */
type Found = DamagedPart & { readonly shard: number };

/** What a report is answered from. @param more tables that are read beside those of reports */
export function questionedBy(plan: Plan, more: readonly string[] = []): Questioned {
  const { days, compared, options } = plan;
  const { as_of, moment, adjustments, by_load } = options;
  const isClosed = as_of !== undefined && !adjustments;
  const isOfLoads = moment !== undefined || by_load;
  return {
    days: [days, ...(compared ? [compared.days] : [])],
    tables: [
      ...Object.keys(ownersOf({ ...plan, ...(isClosed && { closed: [] }) })),
      // What an unload that mends damaged events leaves in rollups is made of the others.
      ...(isClosed ? ['placements'] : ['events', ...namesTables]),
      ...(isOfLoads ? [changesTable(plan.breakdown.family), ...historyTables] : []),
      ...more,
    ],
  };
}
