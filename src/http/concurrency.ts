import { Problem } from './problems.ts';

export interface ConcurrencyOptions {
  /** Reports that run at a time; a quarter of them is kept for small ones. */
  readonly most: number;
  /** Reports that wait for a place. */
  readonly queue?: number;
  readonly waitMs?: number;
}

interface Waiter {
  readonly account: string;
  readonly small: boolean;
  readonly admit: () => void;
}

/**
 * Bounds the reports that run at a time, overall and per account, with a short queue. No account takes more than
 * half of the places, nor of the queue, and large reports leave some places free, so that a small one is never
 * stuck behind them.
 */
export class ReportGate {
  readonly #most: number;
  readonly #mostLarge: number;
  readonly #mostPerAccount: number;
  readonly #queue: number;
  readonly #waitMs: number;
  readonly #running = new Map<string, number>();
  readonly #waiting: Waiter[] = [];
  #total = 0;
  #large = 0;

  constructor({ most, queue = 4 * most, waitMs = 5_000 }: ConcurrencyOptions) {
    this.#most = most;
    this.#mostLarge = Math.max(1, most - Math.ceil(most / 4));
    this.#mostPerAccount = Math.max(1, Math.ceil(most / 2));
    this.#queue = queue;
    this.#waitMs = waitMs;
  }

  get running(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Waits for a place and returns what gives it back.
   * @param isSmall asked only where places are scarce
   * @throws {Problem} `too_many_reports` when the queue is full or the wait too long
   */
  async enter(account: string, isSmall: () => Promise<boolean>, signal: AbortSignal): Promise<() => void> {
    // With room for a large report nobody needs to know which it is.
    const small = this.#fits(account, false) ? false : await isSmall();
    if (!this.#fits(account, small)) await this.#wait(account, small, signal);
    else this.#take(account, small);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#leave(account, small);
    };
  }

  #fits(account: string, small: boolean): boolean {
    const ofAccount = this.#running.get(account) ?? 0;
    const room = small ? this.#total < this.#most : this.#large < this.#mostLarge && this.#total < this.#most;
    return room && ofAccount < this.#mostPerAccount;
  }

  #take(account: string, small: boolean): void {
    this.#total++;
    if (!small) this.#large++;
    this.#running.set(account, (this.#running.get(account) ?? 0) + 1);
  }

  #leave(account: string, small: boolean): void {
    this.#total--;
    if (!small) this.#large--;
    const rest = (this.#running.get(account) ?? 1) - 1;
    if (rest > 0) this.#running.set(account, rest);
    else this.#running.delete(account);
    for (const waiter of [...this.#waiting]) {
      if (!this.#fits(waiter.account, waiter.small)) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      this.#take(waiter.account, waiter.small);
      waiter.admit();
    }
  }

  #wait(account: string, small: boolean, signal: AbortSignal): Promise<void> {
    const seconds = Math.ceil(this.#waitMs / 1000);
    const refusal = () =>
      new Problem('too_many_reports', `too many reports are running; try again in ${seconds} s`, {
        headers: { 'Retry-After': String(seconds) },
      });
    const ofAccount = this.#waiting.filter((waiter) => waiter.account === account).length;
    const full = this.#waiting.length >= this.#queue || ofAccount >= Math.ceil(this.#queue / 2);
    // A caller that went away meanwhile would never be told so: its signal has fired already.
    if (full || signal.aborted) throw refusal();
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        const at = this.#waiting.indexOf(waiter);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(refusal());
      };
      const timer = setTimeout(giveUp, this.#waitMs);
      const waiter: Waiter = {
        account,
        small,
        admit: () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(waiter);
    });
  }
}
