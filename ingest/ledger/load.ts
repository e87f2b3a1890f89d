import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { type Store, select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { heartbeatColumns, isAlive, type LoadHeartbeat, machine } from './load-heartbeat.ts';
import { defaultTimings, type LoadTimings, lapsedAfterMs } from './load-timings.ts';
import { type WaitOptions, waitUntil } from './wait-until.ts';

/** What a load has done so far. */
export interface LoadCounts {
  /** Events counted now. */
  rows: number;
  /** Events found already loaded by an earlier run. */
  repeatedRows: number;
  /** Lines rejected and kept as rejected rows. */
  rejectedRows: number;
  /** Events left out because their event_id was already stored. */
  duplicateRows: number;
  /** Bytes of the file itself, read so far. */
  bytes: number;
  chunks: number;
}

export function noCounts(): LoadCounts {
  return { rows: 0, repeatedRows: 0, rejectedRows: 0, duplicateRows: 0, bytes: 0, chunks: 0 };
}

export interface LoadDescription {
  readonly kind: 'events' | 'replay' | 'rebuild';
  readonly file: string;
  readonly dedupe?: boolean;
}

export interface LoadOptions extends WaitOptions {
  /** Absent: those of production. */
  readonly timings?: LoadTimings;
}

/** One row of the load history, kept current while the load runs. */
export class Load {
  readonly id: string;
  readonly counts: LoadCounts = noCounts();
  readonly #store: Store;
  readonly #description: LoadDescription;
  readonly #timings: LoadTimings;
  readonly #startedAt: Date;
  #replayId = '';
  /** Its place in the order of loads: `yyyy-mm-dd hh:mm:ss.ffffff`, UTC; undefined until it is taken. */
  #turn: string | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  /** The heartbeat in flight; the final state must not be written before it has ended. */
  #beating: Promise<void> = Promise.resolve();
  /** When ClickHouse last accepted a heartbeat, and the end of the last long gap between two; by `performance.now()`. */
  #heartbeatAt = performance.now();
  #lapsedUntil = Number.NEGATIVE_INFINITY;
  #turnAt = 0;

  private constructor(store: Store, description: LoadDescription, now: Date, timings: LoadTimings) {
    // Ids begin with the time, to the millisecond, so that they sort by it.
    const time = now.toISOString().replace(/\D/g, '');
    this.id = `${time.slice(0, 14)}-${time.slice(14)}${randomBytes(3).toString('hex')}`;
    this.#store = store;
    this.#description = description;
    this.#timings = timings;
    this.#startedAt = now;
  }

  /**
   * Records a load as running and waits for its turn: a load waits for a rebuild that began before it and,
   * with `dedupe`, for other such loads; a replay waits for another replay of the same load; a rebuild waits for
   * every load that began before it.
   */
  static async begin(
    store: Store,
    description: LoadDescription,
    now: Date,
    options: LoadOptions = {},
  ): Promise<Load> {
    const load = new Load(store, description, now, options.timings ?? defaultTimings);
    try {
      await load.#takeTurn();
      load.#heartbeat = setInterval(() => {
        // A missed heartbeat only makes the load look dead; its next statement reports the failure.
        load.#beating = load.#record('running').catch(() => {});
      }, load.#timings.heartbeatMs);
      load.#heartbeat.unref();
      await load.#waitForTurn(options);
    } catch (error) {
      await load.fail(error);
      throw error;
    }
    return load;
  }

  async finish(): Promise<void> {
    await this.#stopBeating();
    await retrying(() => this.#record('loaded'));
  }

  /** Records the failure; if ClickHouse is away, the load counts as dead once its last heartbeat is old. */
  async fail(error: unknown): Promise<void> {
    await this.#stopBeating();
    await this.#record('failed', error instanceof Error ? error.message : String(error)).catch(() => {});
  }

  /** Records which replay this load makes or finishes. */
  async replays(id: string): Promise<void> {
    this.#replayId = id;
    await this.#beating;
    await retrying(() => this.#record('running'));
  }

  /** Whether others may have counted this load as dead, and gone ahead, since a time by `performance.now()`. */
  heartbeatLapsedSince(time: number): boolean {
    return this.#lapsedUntil > time || performance.now() - this.#heartbeatAt > lapsedAfterMs(this.#timings);
  }

  /** Takes a new turn and waits for it, if others may have gone ahead of this load. */
  async requeueIfLapsed(options: WaitOptions): Promise<void> {
    if (!this.heartbeatLapsedSince(this.#turnAt)) return;
    await this.#takeTurn();
    await this.#waitForTurn(options);
  }

  /** @throws when others may have gone ahead of this load */
  assertTurnHeld(): void {
    if (!this.heartbeatLapsedSince(this.#turnAt)) return;
    throw new Error(
      `load ${this.id} could not record a heartbeat for more than ${lapsedAfterMs(this.#timings) / 1000} s, and other loads may have gone ahead: run the same command again`,
    );
  }

  #stopBeating(): Promise<void> {
    clearInterval(this.#heartbeat);
    return this.#beating;
  }

  /**
   * A load is visible before it takes its turn, and all others wait for a load without a turn. So a load with an
   * earlier turn is always seen, whatever the clocks of the machines say and however slow one of them is.
   */
  async #takeTurn(): Promise<void> {
    await this.#record('running');
    await this.#record('running', '', 'now64(6)');
    const [row] = await retrying(() =>
      select<{ turn: string }>(
        this.#store,
        'SELECT toString(max(turn)) AS turn FROM loads WHERE load_id = {id:String}',
        { id: this.id },
      ),
    );
    if (!row) throw new Error(`ClickHouse has lost the record of load ${this.id}`);
    this.#turn = row.turn;
    this.#turnAt = performance.now();
  }

  async #waitForTurn(options: WaitOptions): Promise<void> {
    const { kind, dedupe } = this.#description;
    const blockers = [
      kind === 'rebuild' ? 'true' : "kind = 'rebuild'",
      ...(kind === 'replay' ? ["kind = 'replay' AND file = {file:String}"] : []),
      ...(dedupe ? ['dedupe'] : []),
    ].join(' OR ');
    const { pollMs } = this.#timings;
    const blockedBy = async () => (await this.#aliveBefore(blockers, options.signal))[0];
    await waitUntil(blockedBy, { ...options, pollMs });
  }

  async #aliveBefore(condition: string, signal: AbortSignal | undefined): Promise<string[]> {
    const rows = await retrying(
      () =>
        select<LoadHeartbeat & { id: string }>(
          this.#store,
          `SELECT load_id AS id, ${heartbeatColumns} FROM loads AS l FINAL
           WHERE (turn, load_id) < (toDateTime64({turn:String}, 6, 'UTC'), {id:String}) AND state = 'running' AND (${condition})`,
          {
            id: this.id,
            turn: this.#turn,
            file: this.#description.file,
            deadAfterMs: this.#timings.deadAfterMs,
          },
        ),
      { signal },
    );
    return rows.filter(isAlive).map(({ id }) => id);
  }

  /** @param turn the SQL expression of the turn */
  async #record(
    state: 'running' | 'failed' | 'loaded',
    error = '',
    turn = "toDateTime64({turn:String}, 6, 'UTC')",
  ): Promise<void> {
    const { kind, file, dedupe = false } = this.#description;
    await this.#store.command({
      query: `INSERT INTO loads (load_id, kind, dedupe, file, user, host, pid, started_at, turn, finished_at, state, rows,
                                 repeated_rows, rejected_rows, duplicate_rows, bytes, chunks, replay_id, error)
              SELECT {id:String}, {kind:String}, {dedupe:Bool}, {file:String}, {user:String}, {host:String}, {pid:UInt32},
                     fromUnixTimestamp64Milli({startedAt:Int64}, 'UTC'),
                     ${turn}, ${state === 'running' ? 'toDateTime64(0, 3)' : 'now64(3)'}, {state:String},
                     {rows:UInt64}, {repeatedRows:UInt64}, {rejectedRows:UInt64}, {duplicateRows:UInt64},
                     {bytes:UInt64}, {chunks:UInt32}, {replayId:String}, {error:String}`,
      query_params: {
        id: this.id,
        kind,
        dedupe,
        file,
        user: userName(),
        host: machine(),
        pid: process.pid,
        startedAt: this.#startedAt.getTime(),
        turn: this.#turn ?? '1970-01-01 00:00:00',
        state,
        error,
        replayId: this.#replayId,
        ...this.counts,
      },
    });
    const now = performance.now();
    if (now - this.#heartbeatAt > lapsedAfterMs(this.#timings)) this.#lapsedUntil = now;
    this.#heartbeatAt = now;
  }
}

/** The user of a container can have a number and no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
