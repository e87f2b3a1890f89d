import { setTimeout as delay } from 'node:timers/promises';
import { type Store, select } from '../clickhouse/client.ts';
import type { KnownChunk } from './chunks.ts';
import { aliveLoads, type Load } from './loads.ts';
import { retrying } from './retry.ts';

export interface SentChunk {
  /** sha256 of the content, hex: its name everywhere. */
  readonly chunk: string;
  /** sha256 of its first line, hex. */
  readonly head: string;
  readonly bytes: number;
  readonly rows: number;
}

/** What to do with a chunk: it is loaded already, or it is this load's to send. */
export type Claim = { readonly loaded: true; readonly rows: number } | { readonly loaded: false };

const pollMs = 250;

/** Every chunk ever sent, and what became of it. Everything here can be repeated. */
export class Ledger {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Chunks of earlier runs whose first line has this hash. */
  async knownChunks(head: string): Promise<KnownChunk[]> {
    const rows = await retrying(() =>
      select<{ chunk: string; length: number }>(
        this.#store,
        `SELECT chunk, toUInt32(max(c.bytes)) AS length FROM load_chunks AS c
         WHERE head = unhex({head:String}) GROUP BY chunk`,
        { head },
      ),
    );
    return rows.map(({ chunk, length }) => ({ chunk, bytes: length }));
  }

  /**
   * Makes a chunk this load's own to send. Where another load that is alive has claimed it before, waits for
   * that one; tells when it is loaded by then.
   */
  async claim(load: Load, chunk: SentChunk): Promise<Claim> {
    const done = (await this.#claims(chunk)).find(({ loaded }) => loaded);
    if (done) return { loaded: true, rows: done.rows };
    await this.#record(load, chunk, 'sent_at');
    for (;;) {
      const claims = await this.#claims(chunk);
      const done = claims.find(({ loaded }) => loaded);
      if (done) return { loaded: true, rows: done.rows };
      const before = claims.slice(
        0,
        claims.findIndex(({ loadId }) => loadId === load.id),
      );
      const alive = await retrying(() =>
        aliveLoads(
          this.#store,
          before.map(({ loadId }) => loadId),
        ),
      );
      if (alive.length === 0) return { loaded: false };
      await delay(pollMs);
    }
  }

  /** Records that the store has acknowledged the whole chunk. */
  async markLoaded(load: Load, chunk: SentChunk, rows: number, rejectedRows: number): Promise<void> {
    await this.#record(load, chunk, 'loaded_at', rows, rejectedRows);
  }

  /**
   * The load time for the rows of a chunk, `yyyy-mm-dd hh:mm:ss.ffffff` UTC: now, or for a chunk in doubt the
   * time that its rows already carry if any of them arrived, so that events and rollups agree.
   */
  async loadTime(chunk: string): Promise<string> {
    const [row] = await retrying(() =>
      select<{ time: string }>(
        this.#store,
        `SELECT toString(if(count() = 0, now64(6, 'UTC'), max(d.loaded_at))) AS time
         FROM chunk_days AS d WHERE chunk = {chunk:String}`,
        { chunk },
      ),
    );
    if (!row) throw new Error('the store did not tell the time');
    return row.time;
  }

  /** The loads that have claimed a chunk, first one first. */
  #claims({ head, chunk }: SentChunk): Promise<{ loadId: string; loaded: number; rows: number }[]> {
    return retrying(() =>
      select(
        this.#store,
        `SELECT load_id AS loadId, toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded, toUInt32(max(c.rows)) AS rows FROM load_chunks AS c
         WHERE head = unhex({head:String}) AND chunk = {chunk:String}
         GROUP BY load_id ORDER BY max(c.sent_at), load_id`,
        { head, chunk },
      ),
    );
  }

  async #record(
    load: Load,
    { head, chunk, bytes }: SentChunk,
    time: 'sent_at' | 'loaded_at',
    rows = 0,
    rejectedRows = 0,
  ): Promise<void> {
    await retrying(() =>
      this.#store.command({
        query: `INSERT INTO load_chunks (head, chunk, load_id, bytes, rows, rejected_rows, ${time})
                SELECT unhex({head:String}), {chunk:String}, {loadId:String}, {bytes:UInt64}, {rows:UInt64},
                       {rejectedRows:UInt64}, now64(6)`,
        query_params: { head, chunk, bytes, rows, rejectedRows, loadId: load.id },
      }),
    );
  }
}
