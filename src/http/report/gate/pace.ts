export interface PaceRules {
  /** How often it is looked how far answers have come. */
  readonly tickMs: number;
  /** An answer that is taken more slowly is held up by its caller. */
  readonly held: Pace;
  /** An answer that is taken more slowly is too slow to go on while others wait. */
  readonly tooSlow: Pace;
  /** How long an account is known as slow after a report of it was broken off. */
  readonly rememberMs: number;
}

/** So many bytes in a second, over that time. */
export interface Pace {
  readonly bytesPerSecond: number;
  readonly ms: number;
}

/**
 * ClickHouse writes some 300 MiB/s, so a held-up answer gives it next to nothing to do. What is too slow is found out
 * late, because a socket accepts nothing before a third of its send buffer (4 MiB at most) is free again: of a caller
 * at 2 Mbit/s, which is not too slow, that was 1.5 MB at a time, every 6 s.
 */
export const defaultPaceRules: PaceRules = {
  tickMs: 200,
  held: { bytesPerSecond: 1024 * 1024, ms: 1_000 },
  tooSlow: { bytesPerSecond: 64 * 1024, ms: 10_000 },
  rememberMs: 60_000,
};

/**
 * How fast a caller takes an answer while there is something to take. What a service or ClickHouse is slow with is
 * not counted: time runs in ticks, and only while bytes wait for the caller.
 */
export class AnswerPace {
  readonly #tickMs: number;
  readonly #keep: number;
  /** Bytes that each of the last ticks took, since the caller last had all there was. */
  readonly #taken: number[] = [];
  #total: number;
  #stillTicks = 0;
  #waited = false;

  /** @param total what the socket had accepted before, in bytes */
  constructor({ tickMs, held, tooSlow }: PaceRules, total = 0) {
    this.#total = total;
    this.#tickMs = tickMs;
    this.#keep = Math.ceil(Math.max(held.ms, tooSlow.ms) / tickMs);
  }

  /** @param total what the socket has accepted so far, in bytes */
  tick(total: number, bytesWait: boolean): void {
    const taken = total - this.#total;
    this.#total = total;
    this.#stillTicks = bytesWait && taken === 0 ? this.#stillTicks + 1 : 0;
    if (!bytesWait) this.#taken.length = 0;
    // What was taken before bytes had to wait has filled buffers, and says nothing of the caller.
    else if (this.#waited && this.#taken.push(taken) > this.#keep) this.#taken.shift();
    this.#waited = bytesWait;
  }

  /** Whether it is slower or not; undefined as long as it has not been seen for that time. */
  isBelow({ bytesPerSecond, ms }: Pace): boolean | undefined {
    const ticks = Math.ceil(ms / this.#tickMs);
    if (this.#taken.length < ticks) return undefined;
    return sum(this.#taken.slice(-ticks)) < (bytesPerSecond * ms) / 1000;
  }

  /** Bytes taken lately. */
  get recentBytes(): number {
    return sum(this.#taken);
  }

  /** How long nothing was taken. */
  get stillMs(): number {
    return this.#stillTicks * this.#tickMs;
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
