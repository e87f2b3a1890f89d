import { text } from 'node:stream/consumers';
import type { Catalog } from '../../../catalog/catalog.ts';
import { localDatabase } from '../../../clickhouse/cluster/layout.ts';
import type { Reader, ReadStatement } from '../../../clickhouse/reader.ts';
import type { Damage } from '../damage.ts';
import type { Plan } from '../plan.ts';
import { StoreState } from './store-state.ts';

/** The statement that reads the view on all shards, with what names each of them has in its dictionaries. */
function stateStatement(catalog: Catalog, database: string): ReadStatement {
  const sources = Object.values(catalog.dimensions).flatMap(({ columns }) =>
    columns.flatMap((column) => column.name ?? []),
  );
  // The empty account, in words that are computed where the row is: a shard has dictionaries of its own.
  const ids = sources.map(
    (source) => `dictGet('${database}.${source.dictionary}', '${source.attribute}', (left(name, 0), ''))`,
  );
  return {
    query: [
      `SELECT name, partition, folder, state, cityHash64(${[...new Set(ids)].join(', ')}), first_day, last_day, shardNum(), uptime() <= {askedBefore:UInt32}`,
      'FROM store_state WHERE database IN ({database:String}, {local:String}) FORMAT TSV',
    ].join('\n'),
    params: { database, local: localDatabase(database) },
    // Asked many times a second. A shard that is down tells nothing, and who asks for reports of others need not care.
    settings: { max_threads: 1, priority: 1, log_queries: 0, skip_unavailable_shards: 1 },
  };
}

export interface StoreVersionOptions {
  readonly reader: Reader;
  readonly catalog: Catalog;
  readonly database: string;
  /** Learns of each state. */
  readonly damage: Damage;
  /** How old a state may be that is taken for the present one. */
  readonly trustMs: number;
  /** Called when the state cannot be read. */
  readonly onError: (error: unknown) => void;
}

/** A store that does not tell its state in this time tells none. */
const giveUpAfterMs = 2_000;
const askAgainAfterMs = 1_000;
/** An older state is not begun with: what is kept under it would hardly be found again. Of times `trustMs`, and at most. */
const knownFor = { times: 20, ms: 2_000 };

/** Follows the state of the store. It is asked for only when somebody needs it, and all who do share the answer. */
export class StoreVersion {
  readonly #options: StoreVersionOptions;
  readonly #statement: ReadStatement;
  #state: StoreState | undefined;
  #changes = 0;
  /** When the statement began that `#state` comes from. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Of the last statement, if that failed. */
  #failedAt: number | undefined;
  #running: { readonly since: number; readonly state: Promise<StoreState | undefined> } | undefined;
  #next: Promise<StoreState | undefined> | undefined;

  constructor(options: StoreVersionOptions) {
    this.#options = options;
    this.#statement = stateStatement(options.catalog, options.database);
  }

  /**
   * The state of the store, if it tells of all shards that the report reads.
   * @param asksHome whether ClickHouse is asked for the shard of the account where the state lacks a shard
   */
  async of({ account, routing }: Plan, asksHome = true): Promise<StoreState | undefined> {
    // The metadata of one replica do not tell what another one answers.
    if (routing?.replicated) return undefined;
    const state = await this.current();
    if (!state || !routing) return state;
    const { cluster, shards } = routing;
    if (!cluster) return undefined;
    if (state.shards.size === cluster.shards) return state;
    if (shards === 'all' || !asksHome) return undefined;
    const home = await this.#homeOf(cluster.home, account);
    return home !== undefined && state.shards.has(home) ? state : undefined;
  }

  /**
   * The last state that was read, at once, if that was a moment ago and of all shards: what is read from now on is as old
   * as that or newer.
   */
  known({ routing }: Plan): StoreState | undefined {
    if (routing?.replicated) return undefined;
    const ageMs = performance.now() - this.#askedAt;
    if (ageMs >= Math.min(this.#options.trustMs * knownFor.times, knownFor.ms)) return undefined;
    return routing && this.#state?.shards.size !== routing.cluster?.shards ? undefined : this.#state;
  }

  /** Asked each time: while a shard does not tell, nothing tells whether the account is on another one now. */
  async #homeOf(home: string, account: string): Promise<number | undefined> {
    try {
      const [found] = await this.#options.reader.rows<{ home: number }>({
        query: `SELECT toUInt32(${home}) AS home`,
        params: { account },
        settings: { max_threads: 1, priority: 1, log_queries: 0 },
      });
      return found?.home;
    } catch (error) {
      this.#options.onError(error);
      return undefined;
    }
  }

  /** A state of the store no older than `trustMs`, counted from this call; undefined if the store does not tell. */
  current(): Promise<StoreState | undefined> | StoreState | undefined {
    const now = performance.now();
    const { trustMs } = this.#options;
    if (this.#state && now - this.#askedAt < trustMs) return this.#state;
    if (this.#failedAt !== undefined) {
      // Nobody waits for a store that may fail again.
      if (!this.#running && now - this.#failedAt > askAgainAfterMs) void this.#ask();
      return undefined;
    }
    if (!this.#running) return this.#ask();
    if (now - this.#running.since < trustMs) return this.#running.state;
    this.#next ??= this.#running.state.then(() => {
      this.#next = undefined;
      return this.#running?.state ?? this.#ask();
    });
    return this.#next;
  }

  #ask(): Promise<StoreState | undefined> {
    const since = performance.now();
    const state = new Promise<StoreState | undefined>((resolve) => {
      const giveUp = setTimeout(() => {
        this.#fail(new Error(`ClickHouse did not tell the state of the store in ${giveUpAfterMs} ms`));
        resolve(undefined);
      }, giveUpAfterMs).unref();
      void this.#read(since).then((read) => {
        clearTimeout(giveUp);
        this.#running = undefined;
        resolve(read);
      });
    });
    this.#running = { since, state };
    return state;
  }

  async #read(since: number): Promise<StoreState | undefined> {
    try {
      const { reader, damage } = this.#options;
      const { params } = this.#statement;
      const statement = { ...this.#statement, params: { ...params, askedBefore: damage.askedBefore } };
      const answer = await text(await reader.stream(statement));
      if (!this.#state?.isSame(answer))
        this.#state = new StoreState(answer, this.#state, () => ++this.#changes);
      if (this.#state) await damage.follow(since, this.#state);
      this.#askedAt = since;
      this.#failedAt = undefined;
      return this.#state;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #fail(error: unknown): void {
    this.#failedAt = performance.now();
    this.#state = undefined;
    this.#options.onError(error);
  }
}
