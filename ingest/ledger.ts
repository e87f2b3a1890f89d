import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { type Store, select } from '../clickhouse/client.ts';
import type { KnownChunk } from './chunks.ts';

/** What a file of a run came to. */
export interface LoadCounts {
  /** Events counted now. */
  rows: number;
  /** Events found already loaded by an earlier run. */
  repeatedRows: number;
  /** Bytes of the file itself, read so far. */
  bytes: number;
  chunks: number;
}

export interface Load {
  readonly id: string;
  readonly file: string;
  readonly startedAt: Date;
}

export interface SentChunk {
  readonly chunk: string;
  readonly head: string;
  readonly bytes: number;
  readonly rows: number;
}

/** The history of loads and of every chunk ever sent, kept beside the events. */
export class Ledger {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Records that a file is being loaded. The id begins with the time, so that ids sort by it. */
  async begin(file: string, now: Date): Promise<Load> {
    const id = `${now.toISOString().replace(/\D/g, '').slice(0, 14)}-${randomBytes(4).toString('hex')}`;
    const load = { id, file, startedAt: now };
    await this.#record(load, { state: 'running' });
    return load;
  }

  async finish(load: Load, counts: LoadCounts): Promise<void> {
    await this.#record(load, { state: 'loaded', counts });
  }

  async fail(load: Load, counts: LoadCounts, error: string): Promise<void> {
    await this.#record(load, { state: 'failed', counts, error });
  }

  async #record(
    load: Load,
    { state, counts, error = '' }: { state: string; counts?: LoadCounts; error?: string },
  ): Promise<void> {
    await this.#store.command({
      query: `INSERT INTO loads (load_id, file, host, pid, started_at, finished_at, state, rows, repeated_rows, bytes, chunks, error)
              SELECT {id:String}, {file:String}, {host:String}, {pid:UInt32},
                     fromUnixTimestamp64Milli({startedAt:Int64}, 'UTC'),
                     ${state === 'running' ? 'toDateTime64(0, 3)' : 'now64(3)'}, {state:String},
                     {rows:UInt64}, {repeatedRows:UInt64}, {bytes:UInt64}, {chunks:UInt32}, {error:String}`,
      query_params: {
        id: load.id,
        file: load.file,
        host: hostname(),
        pid: process.pid,
        startedAt: load.startedAt.getTime(),
        state,
        error,
        ...(counts ?? { rows: 0, repeatedRows: 0, bytes: 0, chunks: 0 }),
      },
    });
  }

  /** Chunks of earlier runs whose first line has this hash. */
  async knownChunks(head: string): Promise<KnownChunk[]> {
    const rows = await select<{ chunk: string; length: number; loaded: number }>(
      this.#store,
      `SELECT chunk, toUInt32(max(c.bytes)) AS length, toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded
       FROM load_chunks AS c WHERE head = unhex({head:String}) GROUP BY chunk`,
      { head },
    );
    return rows.map(({ chunk, length, loaded }) => ({ chunk, bytes: length, loaded: loaded === 1 }));
  }

  /** Records that a chunk is about to be sent; until `markLoaded` it is in doubt. */
  async markSent(load: Load, chunk: SentChunk): Promise<void> {
    await this.#recordChunk(load, chunk, 'sent_at');
  }

  /** Records that the store has acknowledged the whole chunk. */
  async markLoaded(load: Load, chunk: SentChunk): Promise<void> {
    await this.#recordChunk(load, chunk, 'loaded_at');
  }

  async #recordChunk(load: Load, sent: SentChunk, time: 'sent_at' | 'loaded_at'): Promise<void> {
    await this.#store.command({
      query: `INSERT INTO load_chunks (head, chunk, load_id, bytes, rows, ${time})
              SELECT unhex({head:String}), {chunk:String}, {loadId:String}, {bytes:UInt64}, {rows:UInt64}, now64(6)`,
      query_params: {
        head: sent.head,
        chunk: sent.chunk,
        bytes: sent.bytes,
        rows: sent.rows,
        loadId: load.id,
      },
    });
  }

  /**
   * The load time for the rows of a chunk, `yyyy-mm-dd hh:mm:ss.ffffff` UTC: now, or for a chunk in doubt the
   * time that its rows already carry if any of them arrived, so that events and rollups agree.
   */
  async loadTime(chunk: string, inDoubt: boolean): Promise<string> {
    const arrived = '(SELECT max(loaded_at) FROM events WHERE chunk = {chunk:String})';
    const [row] = await select<{ time: string }>(
      this.#store,
      inDoubt
        ? `SELECT toString(if(toUInt64(${arrived}) = 0, now64(6, 'UTC'), ${arrived})) AS time`
        : "SELECT toString(now64(6, 'UTC')) AS time",
      { chunk },
    );
    if (!row) throw new Error('the store did not tell the time');
    return row.time;
  }
}
