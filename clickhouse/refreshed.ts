export interface RefreshOptions {
  /** How often the value is fetched again. */
  readonly everyMs: number;
  /** How old a value may get before it is no longer current; absent: any age. */
  readonly maxAgeMs?: number;
  /** Called when a fetch in the background fails; the last value stays. */
  readonly onError: (error: unknown) => void;
  /** Absent: a clock that nobody can set back. */
  readonly now?: () => number;
}

/** A value that is fetched again in the background, so that no request waits for it. */
export class Refreshed<T> {
  readonly #fetch: () => Promise<T>;
  readonly #options: Required<RefreshOptions>;
  #value: T | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(fetch: () => Promise<T>, options: RefreshOptions) {
    this.#fetch = fetch;
    this.#options = { maxAgeMs: Number.POSITIVE_INFINITY, now: () => performance.now(), ...options };
  }

  /** Fetches the value and keeps fetching it, also after a first failure. @throws that failure */
  async start(): Promise<void> {
    const { everyMs, onError } = this.#options;
    this.stop();
    this.#timer = setInterval(() => void this.refresh().catch(onError), everyMs);
    this.#timer.unref();
    await this.refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** What was fetched last, however old; undefined before the first fetch. */
  get value(): T | undefined {
    return this.#value;
  }

  /** Whether the value is at most `maxAgeMs` old. */
  get isCurrent(): boolean {
    return this.#options.now() - this.#fetchedAt <= this.#options.maxAgeMs;
  }

  /** Fetches the value now; callers share a fetch that is under way. @throws when the fetch fails */
  refresh(): Promise<void> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  /** Waits until no fetch is under way that began earlier, whether it succeeds or fails. */
  async settled(): Promise<void> {
    await Promise.allSettled([this.#fetching]);
  }

  async #fetchOnce(): Promise<void> {
    const startedAt = this.#options.now();
    this.#value = await this.#fetch();
    this.#fetchedAt = startedAt;
  }
}
