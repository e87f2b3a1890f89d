import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../clickhouse/client.ts';
import { retrying, titleOfPage } from '../../clickhouse/retry.ts';
import { heartbeatMs, lapsedAfterMs, loadPollMs } from '../../clickhouse/timings.ts';
import { isAlive, machine, userName } from './load-heartbeat.ts';
import { isExclusive, type LoadRecord, loadsRunning, type RunningLoad, recordLoad } from './load-records.ts';
import { loadsAtWork } from './loads-at-work.ts';

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
  /** Records that the condition of a mapping left out. */
  leftOutRows: number;
  /** Bytes of the file itself, read so far. */
  bytes: number;
  chunks: number;
}

export function noCounts(): LoadCounts {
  return { rows: 0, repeatedRows: 0, rejectedRows: 0, duplicateRows: 0, leftOutRows: 0, bytes: 0, chunks: 0 };
}

interface LoadDescription {
  readonly kind: LoadRecord['kind'];
  readonly file: string;
  readonly dedupe?: boolean;
  /** Loads of the same lock run one after another: those of inputs that begin alike, and all replays. */
  readonly lock?: string;
  /** Where it counts what it does; absent: in counts of its own. */
  readonly counts?: LoadCounts;
}

/** How a load waits for other loads. */
export interface WaitOptions {
  /** Called once, when a load has to wait, with the id of the other load. */
  readonly onWait?: (other: string) => void;
  /** Ends the waiting, with an AbortError. */
  readonly signal?: AbortSignal;
}

/** One row of the load history, kept current while the load runs. */
export class Load {
  readonly id: string;
  readonly counts: LoadCounts;
  readonly #store: Store;
  readonly #description: LoadDescription;
  readonly #startedAt: Date;
  #lock: string;
  #replayId = '';
  /** Its place in the order of loads: `yyyy-mm-dd hh:mm:ss.ffffff`, UTC; undefined until it is taken. */
  #turn: string | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  /** The heartbeat in flight; the final state must not be written before it has ended. */
  #beating: Promise<void> = Promise.resolve();
  /** When the last heartbeat that ClickHouse has accepted was sent, and the end of the last long gap; by `performance.now()`. */
  #heartbeatAt = performance.now();
  #lapsedUntil = Number.NEGATIVE_INFINITY;
  #turnAt = 0;
  #hasFailed = false;
  #requeue: Promise<void> | undefined;

  private constructor(store: Store, description: LoadDescription, now: Date) {
    // Ids begin with the time, to the millisecond, so that they sort by it.
    const time = now.toISOString().replace(/\D/g, '');
    this.id = `${time.slice(0, 14)}-${time.slice(14)}${randomBytes(3).toString('hex')}`;
    this.#store = store;
    this.#description = description;
    this.#lock = description.lock ?? '';
    this.counts = description.counts ?? noCounts();
    this.#startedAt = now;
  }

  /**
   * Records a load as running and waits for its turn: a load waits for a rebuild that began before it, for loads of the
   * same lock and, with `dedupe`, for other such loads; a rebuild waits for every load that began before it. Of a load
   * that has ended, all of these wait for what ClickHouse is still storing.
   */
  static async begin(
    store: Store,
    description: LoadDescription,
    now: Date,
    options: WaitOptions = {},
  ): Promise<Load> {
    const load = new Load(store, description, now);
    try {
      const running = await load.#takeTurn(options);
      load.#heartbeat = setInterval(() => {
        // A missed heartbeat only makes the load look dead; its next statement reports the failure.
        load.#beating = load.#record('running').catch(() => {});
      }, heartbeatMs);
      load.#heartbeat.unref();
      await load.#waitForTurn(running, options);
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
    // It may have been unloaded since it failed, while it waited to be mended.
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    await this.#stopBeating();
    const reason = error instanceof Error ? (titleOfPage(error) ?? error.message) : String(error);
    await this.#record('failed', reason).catch(() => {});
  }

  /** Records which replay this load makes or finishes. */
  async replays(id: string): Promise<void> {
    this.#replayId = id;
    await this.#beating;
    await retrying(() => this.#record('running'));
  }

  /** Whether others may have counted this load as dead, and gone ahead, since a time by `performance.now()`. */
  heartbeatLapsedSince(time: number): boolean {
    return this.#lapsedUntil > time || performance.now() - this.#heartbeatAt > lapsedAfterMs;
  }

  /** Goes behind the loads of the same lock that have begun before, under a new turn. */
  async takeLock(lock: string, options: WaitOptions): Promise<void> {
    this.#lock = lock;
    await this.#waitForTurn(await this.#takeTurn(options), options);
  }

  /**
   * Takes a new turn and waits for it, if others may have gone ahead of this load: all that it is at goes behind them.
   * @param since by `performance.now()`
   * @returns whether that was so since then
   */
  async requeueIfLapsed(options: WaitOptions, since: number): Promise<boolean> {
    if (!this.#requeue && this.heartbeatLapsedSince(this.#turnAt)) {
      const behind = async () => this.#waitForTurn(await this.#takeTurn(options), options);
      this.#requeue = behind().finally(() => {
        this.#requeue = undefined;
      });
    }
    await this.#requeue;
    return this.#turnAt > since;
  }

  /** Whether others may have gone ahead of this load, or it is going behind them. */
  get isBehind(): boolean {
    return this.#requeue !== undefined || this.heartbeatLapsedSince(this.#turnAt);
  }

  /** @throws when others may have gone ahead of this load */
  assertTurnHeld(): void {
    if (!this.heartbeatLapsedSince(this.#turnAt)) return;
    throw new Error(
      `load ${this.id} could not record a heartbeat for more than ${lapsedAfterMs / 1000} s, and other loads may have gone ahead: run the same command again`,
    );
  }

  #stopBeating(): Promise<void> {
    clearInterval(this.#heartbeat);
    return this.#beating;
  }

  /**
   * A load is visible before it takes its turn, and all others wait for a load without a turn. So a load with an
   * earlier turn is always seen, whatever the clocks of the machines say and however slow one of them is.
   * @returns the loads that run then
   */
  async #takeTurn({ signal }: WaitOptions): Promise<readonly RunningLoad[]> {
    for (let tries = 0; tries < mostTurns; tries++) {
      await retrying(() => this.#record('running'), { signal });
      await retrying(() => this.#record('running', '', true), { signal });
      const running = await this.#running(signal);
      const own = running.find(({ id }) => id === this.id);
      // Absent where that took so long that the load looks dead: others may have gone ahead.
      if (!own) continue;
      this.#turn = own.turn;
      this.#turnAt = performance.now();
      return running;
    }
    throw new Error(`ClickHouse does not show the record of load ${this.id}`);
  }

  #running(signal?: AbortSignal): Promise<readonly RunningLoad[]> {
    return retrying(() => loadsRunning(this.#store, undefined), { signal });
  }

  /** @param running the loads that run now. @throws an AbortError after the signal */
  async #waitForTurn(running: readonly RunningLoad[], { onWait, signal }: WaitOptions): Promise<void> {
    let other = await this.#blockedBy(running, signal);
    if (other !== undefined) onWait?.(other);
    while (other !== undefined) {
      await delay(loadPollMs, undefined, { signal });
      other = await this.#blockedBy(await this.#running(signal), signal);
    }
  }

  /** A load that has to end before this one goes on. */
  async #blockedBy(
    running: readonly RunningLoad[],
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const { kind, dedupe = false } = this.#description;
    const lock = this.#lock;
    const turn = this.#turn ?? '';
    const blocker = running.find(
      (other) =>
        (other.turn < turn || (other.turn === turn && other.id < this.id)) &&
        (isExclusive(kind) ||
          isExclusive(other.kind) ||
          (lock !== '' && other.lock === lock) ||
          (dedupe && other.dedupe)) &&
        isAlive(other),
    );
    return blocker?.id ?? this.#leftAtWork(signal);
  }

  /** A load that has ended, or was silent for long, while a server is still storing what it has sent. */
  async #leftAtWork(signal: AbortSignal | undefined): Promise<string | undefined> {
    const { kind, dedupe = false } = this.#description;
    const lock = this.#lock;
    if (!isExclusive(kind) && !dedupe && lock === '') return undefined;
    const atWork = await retrying(() => loadsAtWork(this.#store, undefined), { signal });
    const others = [...atWork].filter(([id]) => id !== this.id);
    let left = others.find(([, of]) => lock !== '' && of === lock)?.[0];
    // A load whose turn is later may have sent something before it went behind this one.
    if (left === undefined && isExclusive(kind)) left = others[0]?.[0];
    else if (left === undefined && others.length > 0 && dedupe) {
      const running = await this.#running(signal);
      // With dedupe it runs beside those without.
      const beside = running.filter((other) => !other.dedupe && isAlive(other));
      left = others.find(([id]) => !beside.some((other) => other.id === id))?.[0];
    }
    return left && `${left}: ClickHouse is still storing events of it (system.processes)`;
  }

  /** @param takesTurn whether its turn begins now */
  async #record(state: LoadRecord['state'], error = '', takesTurn = false): Promise<void> {
    const { kind, file, dedupe = false } = this.#description;
    const sentAt = performance.now();
    await recordLoad(this.#store, {
      id: this.id,
      kind,
      dedupe,
      lock: this.#lock,
      file,
      user: userName(),
      host: machine(),
      pid: process.pid,
      startedAt: this.#startedAt.getTime(),
      turn: takesTurn ? undefined : (this.#turn ?? noTurn),
      state,
      error,
      replayId: this.#replayId,
      ...this.counts,
    });
    const now = performance.now();
    if (now - this.#heartbeatAt > lapsedAfterMs) this.#lapsedUntil = now;
    // To others a heartbeat is as old as the statement, however late they see it.
    this.#heartbeatAt = sentAt;
  }
}

const noTurn = '1970-01-01 00:00:00';
/** A server that takes records and never shows them is not asked for ever. */
const mostTurns = 10;
