export type Size = 'small' | 'large';

interface Waiter<Place> {
  readonly account: string;
  readonly admit: (place: Place) => void;
  readonly refuse: () => void;
}

export interface QueueOptions {
  /** How many may wait. */
  readonly most: Readonly<Record<Size, number>>;
  readonly waitMs: number;
  /** Whether callers of the account are slow: others go first. */
  readonly isSlow: (account: string) => boolean;
  /** What a report that waits no longer fails with. */
  readonly refusal: () => Error;
}

/** If reports of both sizes wait, small ones go first; after this many it is a large one's turn. */
const smallInARow = 4;

/**
 * Reports that wait for a place, a short queue for each size. No account takes more than half of a queue; in a full
 * one a newcomer takes the turn of a slow account, or of one that has more than twice as many.
 */
export class ReportQueue<Place> {
  readonly #options: QueueOptions;
  readonly #waiting: Record<Size, Waiter<Place>[]> = { small: [], large: [] };
  #smallSinceLarge = 0;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get length(): number {
    return this.#waiting.small.length + this.#waiting.large.length;
  }

  /** Accounts whose reports wait. */
  get accounts(): Set<string> {
    return new Set([...this.#waiting.small, ...this.#waiting.large].map(({ account }) => account));
  }

  isFull(account: string, size: Size): boolean {
    const waiting = this.#waiting[size];
    const most = this.#options.most[size];
    if (waiting.filter((waiter) => waiter.account === account).length >= Math.ceil(most / 2)) return true;
    return waiting.length >= most && !this.#displaced(account, size);
  }

  /** @throws the refusal when the queue is full, the wait too long or the caller gone */
  wait(account: string, size: Size, signal: AbortSignal): Promise<Place> {
    const { most, waitMs, refusal } = this.#options;
    // The signal of a caller that has left already fired and will not fire again.
    if (signal.aborted || this.isFull(account, size)) throw refusal();
    const waiting = this.#waiting[size];
    if (waiting.length >= most[size]) this.#displaced(account, size)?.refuse();
    return new Promise((resolve, reject) => {
      const forget = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', refuse);
        waiting.splice(waiting.indexOf(waiter), 1);
      };
      const refuse = () => {
        forget();
        reject(refusal());
      };
      const admit = (place: Place) => {
        forget();
        resolve(place);
      };
      const waiter: Waiter<Place> = { account, admit, refuse };
      const timer = setTimeout(refuse, waitMs);
      signal.addEventListener('abort', refuse, { once: true });
      waiting.push(waiter);
    });
  }

  /**
   * Gives a place to the report whose turn it is: of those that fit, not of a slow account, then of the account with the
   * fewest reports under way, then in order of arrival. False when none fits.
   */
  admitNext(
    fits: (account: string, size: Size) => boolean,
    underWay: (account: string) => number,
    take: (account: string, size: Size) => Place,
  ): boolean {
    const { isSlow } = this.#options;
    const next = (size: Size) =>
      this.#waiting[size]
        .filter(({ account }) => fits(account, size))
        .map((waiter) => ({ waiter, slow: Number(isSlow(waiter.account)), count: underWay(waiter.account) }))
        .toSorted((a, b) => a.slow - b.slow || a.count - b.count)[0]?.waiter;
    const [small, large] = [next('small'), next('large')];
    const size = small && !(large && this.#smallSinceLarge >= smallInARow) ? 'small' : 'large';
    const waiter = size === 'small' ? small : large;
    if (!waiter) return false;
    // Small ones count only if a large one could have gone instead.
    if (size === 'large') this.#smallSinceLarge = 0;
    else if (large) this.#smallSinceLarge++;
    waiter.admit(take(waiter.account, size));
    return true;
  }

  /** Whose turn a newcomer takes: the last report of the account with the most, or of the slow one with the most. */
  #displaced(newcomer: string, size: Size): Waiter<Place> | undefined {
    const { isSlow } = this.#options;
    const waiting = this.#waiting[size];
    const counts = new Map<string, number>();
    for (const { account } of waiting) counts.set(account, (counts.get(account) ?? 0) + 1);
    const own = counts.get(newcomer) ?? 0;
    const slow = isSlow(newcomer) ? [] : [...counts].filter(([account]) => isSlow(account));
    const [account, most] = (slow.length > 0 ? slow : [...counts]).reduce(
      (a, b) => (b[1] > a[1] ? b : a),
      ['', 0],
    );
    if (slow.length === 0 && most <= 2 * (own + 1)) return undefined;
    return waiting.findLast((waiter) => waiter.account === account);
  }
}
