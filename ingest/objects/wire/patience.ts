import { setTimeout as delay } from 'node:timers/promises';

export interface PatienceOptions {
  /** How long to keep trying without any progress; the default is two minutes. */
  readonly giveUpAfterMs?: number;
  /** Called with the second failure of a row of them: a connection that was idle for long breaks once. */
  readonly onRetry?: ((error: Error) => void) | undefined;
}

const firstPauseMs = 200;
const longestPauseMs = 10_000;

/** Pauses between attempts that fail: each of a random length, on average twice as long as the one before. */
export class Patience {
  readonly #options: PatienceOptions;
  #pauseMs = firstPauseMs;
  #failedAt: number | undefined;
  #failures = 0;

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /**
   * @param leastMs how long the store asks to be left alone
   * @throws the error when the time is up; an AbortError after the signal
   */
  async afterFailure(error: Error, signal: AbortSignal | undefined, leastMs = 0): Promise<void> {
    const { giveUpAfterMs = 120_000, onRetry } = this.#options;
    const now = performance.now();
    if (++this.#failures === 2) onRetry?.(error);
    this.#failedAt ??= now;
    // Callers that failed together do not come again together.
    const pauseMs = Math.max(Math.min(leastMs, longestPauseMs), this.#pauseMs * (0.5 + Math.random()));
    if (now + pauseMs - this.#failedAt > giveUpAfterMs) throw error;
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
    await delay(pauseMs, undefined, { signal });
  }

  /** Something has come. */
  progress(): void {
    this.#pauseMs = firstPauseMs;
    this.#failedAt = undefined;
    this.#failures = 0;
  }
}
