import { type Store, select } from '../../clickhouse/client.ts';
import { type RetryOptions, retrying } from '../../clickhouse/retry.ts';
import type { KnownChunk } from '../chunks/cut-chunks.ts';
import { type DedupState, dedupStateOf } from './dedup-state.ts';
import type { Load, LoadOptions } from './load.ts';
import { aliveLoads } from './load-heartbeat.ts';
import { defaultTimings, type LoadTimings } from './load-timings.ts';
import { waitUntil } from './wait-until.ts';

export interface SentChunk {
  /** sha256 of the content, hex: its name everywhere. */
  readonly id: string;
  /** sha256 of its first line, hex. */
  readonly firstLineHash: string;
  readonly bytes: number;
  readonly rows: number;
}

/** What to do with a chunk: it is loaded already, or it is this load's to send. */
export type Claim =
  | { readonly loaded: true; readonly rows: number }
  /**
   * `loadTime` is what its rows shall carry: now, or the time that they already carry if any of them arrived in
   * an earlier attempt, so that events and rollups agree; `yyyy-mm-dd hh:mm:ss.ffffff`, UTC.
   */
  | {
      readonly loaded: false;
      readonly loadTime: string;
      readonly dedup: DedupState;
      /** Something of it may have arrived in an earlier attempt, which may have read it by other rules. */
      readonly sentBefore: boolean;
    };

interface ChunkClaim {
  readonly loadId: string;
  readonly loaded: number;
  readonly counted: number;
  readonly sentAt: string;
}

interface LedgerOptions extends LoadOptions {
  /** Told when the store does not answer and is tried again. */
  readonly onRetry?: (error: Error) => void;
}

/** Now, and after all that the ledger has of a chunk, should the clock have been set back. */
const later = `greatest(now64(6, 'UTC'), (
  SELECT max(s.sent_at) + INTERVAL 1 MICROSECOND FROM load_chunks AS s
  WHERE head = unhex({head:String}) AND chunk = {chunk:String}))`;

const loaded = 'toUInt8(toUInt64(max(c.loaded_at)) > 0)';

/** Every chunk ever sent, and what became of it. Everything here can be repeated. */
export class Ledger {
  readonly #store: Store;
  readonly #options: LedgerOptions;
  readonly #retries: RetryOptions;
  readonly #timings: LoadTimings;

  constructor(store: Store, options: LedgerOptions = {}) {
    this.#store = store;
    this.#options = options;
    this.#timings = options.timings ?? defaultTimings;
    this.#retries = { onRetry: options.onRetry };
  }

  /** Chunks of earlier runs whose first line has this hash. */
  async knownChunks(firstLineHash: string): Promise<KnownChunk[]> {
    const rows = await retrying(
      () =>
        select<{ chunk: string; length: number; loaded: number; counted: number }>(
          this.#store,
          `SELECT chunk, toUInt32(max(c.bytes)) AS length, ${loaded} AS loaded, toUInt32(max(c.rows)) AS counted
         FROM load_chunks AS c WHERE head = unhex({head:String}) GROUP BY chunk`,
          { head: firstLineHash },
        ),
      this.#retries,
    );
    return rows.map(({ chunk, length, loaded, counted }) => ({
      id: chunk,
      bytes: length,
      loadedRows: loaded ? counted : undefined,
    }));
  }

  /**
   * Makes this load the only one that cuts a chunk at a line, which it has to claim next: waits for those that are
   * at it and have not claimed theirs. Then tells the chunks that begin there.
   */
  async beginChunk(load: Load, firstLineHash: string): Promise<KnownChunk[]> {
    // In two statements, for the same reason as a claim.
    for (const turn of ['toDateTime64(0, 6)', 'now64(6)']) {
      const query = `INSERT INTO begun_chunks (head, load_id, turn) SELECT unhex({head:String}), {loadId:String}, ${turn}`;
      const query_params = { head: firstLineHash, loadId: load.id };
      await retrying(() => this.#store.command({ query, query_params }), this.#retries);
    }
    const blockedBy = async () => {
      const begun = await retrying(
        () =>
          select<{ loadId: string; cut: 0 | 1 }>(
            this.#store,
            `SELECT load_id AS loadId,
                  load_id IN (SELECT load_id FROM load_chunks WHERE head = unhex({head:String})) AS cut
           FROM begun_chunks AS b WHERE head = unhex({head:String}) GROUP BY load_id ORDER BY max(b.turn), load_id`,
            { head: firstLineHash },
          ),
        this.#retries,
      );
      const own = begun.findIndex(({ loadId }) => loadId === load.id);
      const before = begun.slice(0, own).filter(({ cut }) => !cut);
      return this.#anyAlive(before);
    };
    await waitUntil(blockedBy, { ...this.#options, pollMs: this.#timings.pollMs });
    return this.knownChunks(firstLineHash);
  }

  /**
   * Makes a chunk this load's own to send. Where another load that is alive has claimed it before, waits for
   * that one; tells when it is loaded by then.
   */
  async claim(load: Load, chunk: SentChunk): Promise<Claim> {
    // Whoever takes an earlier turn can be seen before it does: a claim without a time comes before all others,
    // so nobody is first until it is known whose turn is earlier. One statement would not do: its time is earlier
    // than the moment at which it can be seen.
    await this.#record(load, chunk);
    await this.#record(load, chunk, 'sent_at');
    let seen = await this.#claims(chunk, load);
    const blockedBy = async () => {
      if (seen.loaded || seen.earlier.length === 0) return undefined;
      const other = await this.#anyAlive(seen.earlier);
      // Whoever has ended may have loaded the chunk since it was looked up.
      seen = await this.#claims(chunk, load);
      return seen.loaded ? undefined : other;
    };
    await waitUntil(blockedBy, { signal: this.#options.signal, pollMs: this.#timings.pollMs });
    const { loaded, earlier, loadTime } = seen;
    if (loaded) return { loaded: true, rows: loaded.counted };
    // Without a time it was claimed but never sent.
    const sent = earlier.find(({ sentAt }) => !sentAt.startsWith('1970'));
    if (!sent) return { loaded: false, loadTime, dedup: 'reliable', sentBefore: false };
    const dedup = (await this.#wasWithdrawn(chunk)) ? 'expired' : await this.dedupStateOf(sent.sentAt);
    return { loaded: false, loadTime, dedup, sentBefore: true };
  }

  /**
   * What became of a chunk that a load has sent and not marked, once no load runs: another load may have taken it
   * over, and withdrawn what this one sent.
   */
  async outcome(load: Load, chunk: SentChunk): Promise<'own' | 'loaded' | 'taken over'> {
    const { claims, loaded } = await this.#claims(chunk, load);
    if (loaded) return 'loaded';
    return claims.at(-1)?.loadId === load.id ? 'own' : 'taken over';
  }

  /** Records that a chunk is about to be withdrawn, and on which days something of it had arrived. */
  async markWithdrawn(load: Load, { id }: SentChunk): Promise<void> {
    await retrying(
      () =>
        this.#store.command({
          query: `INSERT INTO withdrawn_chunks (chunk, day, load_id)
                SELECT {chunk:String}, arrayJoin(arrayPushBack(groupUniqArray(day), toDate(0))), {loadId:String}
                FROM chunk_days WHERE chunk = {chunk:String}`,
          query_params: { chunk: id, loadId: load.id },
        }),
      this.#retries,
    );
  }

  async #wasWithdrawn({ id }: SentChunk): Promise<boolean> {
    const query = 'SELECT 1 FROM withdrawn_chunks WHERE chunk = {chunk:String} LIMIT 1';
    return (await retrying(() => select(this.#store, query, { chunk: id }), this.#retries)).length > 0;
  }

  /** Records that the store has acknowledged the whole chunk. */
  async markLoaded(load: Load, chunk: SentChunk, rows: number, rejectedRows: number): Promise<void> {
    await this.#record(load, chunk, 'loaded_at', rows, rejectedRows);
  }

  /** The loads that have claimed a chunk, first one first, and the load time for its rows. */
  async #claims(
    { firstLineHash, id }: SentChunk,
    load: Load,
  ): Promise<{
    claims: ChunkClaim[];
    earlier: ChunkClaim[];
    loaded: ChunkClaim | undefined;
    loadTime: string;
  }> {
    const claims = await retrying(
      () =>
        select<ChunkClaim & { time: string }>(
          this.#store,
          `SELECT load_id AS loadId, ${loaded} AS loaded, toUInt32(max(c.rows)) AS counted,
                toString(max(c.sent_at)) AS sentAt,
                (SELECT toString(if(count() = 0, now64(6, 'UTC'), max(d.loaded_at)))
                 FROM chunk_days AS d WHERE chunk = {chunk:String}) AS time
         FROM load_chunks AS c WHERE head = unhex({head:String}) AND chunk = {chunk:String}
         GROUP BY load_id ORDER BY max(c.sent_at), load_id`,
          { head: firstLineHash, chunk: id },
        ),
      this.#retries,
    );
    const [first] = claims;
    if (!first) throw new Error(`the ledger has lost the claim on chunk ${id}`);
    const own = claims.findIndex(({ loadId }) => loadId === load.id);
    return {
      claims,
      earlier: claims.slice(0, own),
      loaded: claims.find(({ loaded }) => loaded),
      loadTime: first.time,
    };
  }

  /** What the engine knows of a chunk that was sent at that time. */
  dedupStateOf(sentAt: string): Promise<DedupState> {
    return dedupStateOf(this.#store, sentAt, this.#retries);
  }

  /** Whether the events of a chunk are there, so many of them; its rollups may still lack some. */
  async isWhole({ id }: SentChunk, lines: number): Promise<boolean> {
    const [row] = await retrying(
      () =>
        select<{ events: number; listed: number }>(
          this.#store,
          `SELECT (SELECT toUInt32(sum(d.events)) FROM chunk_days AS d WHERE chunk = {chunk:String}) AS listed,
                  (SELECT toUInt32(count()) FROM events WHERE chunk = {chunk:String}
                     AND day IN (SELECT day FROM chunk_days WHERE chunk = {chunk:String})) AS events`,
          { chunk: id },
        ),
      this.#retries,
    );
    return row?.events === lines && row.listed === lines;
  }

  /** The time of the store, `yyyy-mm-dd hh:mm:ss.ffffff`, UTC. */
  async now(): Promise<string> {
    const [row] = await retrying(
      () => select<{ now: string }>(this.#store, "SELECT toString(now64(6, 'UTC')) AS now"),
      this.#retries,
    );
    return row?.now ?? '';
  }

  async #anyAlive(loads: readonly { readonly loadId: string }[]): Promise<string | undefined> {
    if (loads.length === 0) return undefined;
    const ids = loads.map(({ loadId }) => loadId);
    const [other] = await retrying(() => aliveLoads(this.#store, ids, this.#timings), this.#retries);
    return other;
  }

  async #record(
    load: Load,
    { firstLineHash, id, bytes }: SentChunk,
    time?: 'sent_at' | 'loaded_at',
    rows = 0,
    rejectedRows = 0,
  ): Promise<void> {
    await retrying(
      () =>
        this.#store.command({
          query: `INSERT INTO load_chunks (head, chunk, load_id, bytes, rows, rejected_rows${time ? `, ${time}` : ''})
                SELECT unhex({head:String}), {chunk:String}, {loadId:String}, {bytes:UInt64}, {rows:UInt64},
                       {rejectedRows:UInt64}${time ? `, ${later}` : ''}`,
          query_params: { head: firstLineHash, chunk: id, bytes, rows, rejectedRows, loadId: load.id },
        }),
      this.#retries,
    );
  }
}
