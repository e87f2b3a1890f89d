import { Problem } from '../problems.ts';

export interface ReportGateOptions {
  /** Reports that run at a time. */
  readonly maxConcurrent: number;
  /** Large reports that wait for a slot. */
  readonly maxWaitingLarge?: number;
  /** Small reports that wait: each takes a moment, so more of them can be served in time. */
  readonly maxWaitingSmall?: number;
  readonly waitMs?: number;
}

interface Waiter {
  readonly account: string;
  readonly admit: () => void;
}

type Size = 'small' | 'large';

export interface Slot {
  /** The size the report was admitted as; large if nobody needed to know. */
  readonly size: Size;
  /** Gives the slot back; calling it again does nothing. */
  leave(): void;
}

/** If reports of both sizes wait, small ones go first; after this many it is a large one's turn. */
const smallInARow = 4;

/**
 * Limits how many reports run at a time, overall and per account, with a short queue for each size. No account takes
 * more than half of the slots or of a queue. Large reports leave some slots free, overall and of an account, so that a
 * small one is never stuck behind them.
 */
export class ReportGate {
  readonly maxConcurrent: number;
  readonly maxPerAccount: number;
  readonly waitSeconds: number;
  readonly #queues: Readonly<Record<Size, number>>;
  readonly #waitMs: number;
  readonly #running: Record<Size, Map<string, number>> = { small: new Map(), large: new Map() };
  readonly #waiting: Record<Size, Waiter[]> = { small: [], large: [] };
  #smallSinceLarge = 0;

  constructor({
    maxConcurrent,
    maxWaitingLarge = 4 * maxConcurrent,
    maxWaitingSmall = 16 * maxConcurrent,
    waitMs = 5_000,
  }: ReportGateOptions) {
    this.maxConcurrent = maxConcurrent;
    this.maxPerAccount = Math.max(1, Math.ceil(maxConcurrent / 2));
    this.#queues = { small: maxWaitingSmall, large: maxWaitingLarge };
    this.#waitMs = waitMs;
    this.waitSeconds = Math.ceil(waitMs / 1000);
  }

  get running(): number {
    return sum(this.#running.small) + sum(this.#running.large);
  }

  get waiting(): number {
    return this.#waiting.small.length + this.#waiting.large.length;
  }

  /**
   * Waits for a slot.
   * @param isSmall called only when slots are scarce and it decides between two queues
   * @throws {Problem} `too_many_reports` when the queue is full or the wait too long
   */
  async enter(account: string, isSmall: () => Promise<boolean>, signal: AbortSignal): Promise<Slot> {
    // The size matters neither when there is room for a large report nor when both queues are full.
    let size: Size = 'large';
    if (!this.#fits(account, size)) {
      if (this.#isFull(account, 'small') && this.#isFull(account, 'large')) throw this.#refusal();
      size = (await isSmall()) ? 'small' : 'large';
    }
    if (this.#fits(account, size)) this.#take(account, size);
    else await this.#wait(account, size, signal);
    let left = false;
    return {
      size,
      leave: () => {
        if (left) return;
        left = true;
        this.#leave(account, size);
      },
    };
  }

  #fits(account: string, size: Size): boolean {
    const { small, large } = this.#running;
    const largeOfAccount = large.get(account) ?? 0;
    if (this.running >= this.maxConcurrent) return false;
    if ((small.get(account) ?? 0) + largeOfAccount >= this.maxPerAccount) return false;
    return (
      size === 'small' ||
      (sum(large) < forLarge(this.maxConcurrent) && largeOfAccount < forLarge(this.maxPerAccount))
    );
  }

  #take(account: string, size: Size): void {
    const running = this.#running[size];
    running.set(account, (running.get(account) ?? 0) + 1);
  }

  #leave(account: string, size: Size): void {
    const running = this.#running[size];
    const rest = (running.get(account) ?? 1) - 1;
    if (rest > 0) running.set(account, rest);
    else running.delete(account);
    while (this.#admitNext());
  }

  /** Admits a waiting report that fits, in order of arrival within its size; false when there is none. */
  #admitNext(): boolean {
    const next = (size: Size) => this.#waiting[size].find(({ account }) => this.#fits(account, size));
    const [small, large] = [next('small'), next('large')];
    const size = small && !(large && this.#smallSinceLarge >= smallInARow) ? 'small' : 'large';
    const waiter = size === 'small' ? small : large;
    if (!waiter) return false;
    // Small ones count only if a large one could have gone instead.
    if (size === 'large') this.#smallSinceLarge = 0;
    else if (large) this.#smallSinceLarge++;
    this.#forget(waiter, size);
    this.#take(waiter.account, size);
    waiter.admit();
    return true;
  }

  #forget(waiter: Waiter, size: Size): void {
    const at = this.#waiting[size].indexOf(waiter);
    if (at >= 0) this.#waiting[size].splice(at, 1);
  }

  #isFull(account: string, size: Size): boolean {
    const ofAccount = this.#waiting[size].filter((waiter) => waiter.account === account).length;
    return this.#waiting[size].length >= this.#queues[size] || ofAccount >= Math.ceil(this.#queues[size] / 2);
  }

  #refusal(): Problem {
    const seconds = this.waitSeconds;
    return new Problem('too_many_reports', `too many reports are running; try again in ${seconds} s`, {
      headers: { 'Retry-After': String(seconds) },
    });
  }

  #wait(account: string, size: Size, signal: AbortSignal): Promise<void> {
    // The signal of a caller that has left already fired and will not fire again.
    if (signal.aborted || this.#isFull(account, size)) throw this.#refusal();
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        clearTimeout(timer);
        this.#forget(waiter, size);
        reject(this.#refusal());
      };
      const timer = setTimeout(giveUp, this.#waitMs);
      const waiter: Waiter = {
        account,
        admit: () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting[size].push(waiter);
    });
  }
}

/** How many of the slots large reports may take: a quarter is kept for small ones. */
function forLarge(slots: number): number {
  return Math.max(1, slots - Math.ceil(slots / 4));
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}
