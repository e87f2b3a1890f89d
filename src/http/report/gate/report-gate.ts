import { Problem, retryIn } from '../../request/problems.ts';
import { defaultPaceRules, type PaceRules } from './pace.ts';
import { type Answer, BrokenOff } from './sending.ts';

export type Size = 'small' | 'large';

export interface ReportGateOptions {
  /** Reports that run at a time. */
  readonly maxConcurrent: number;
  /** How long a report waits for a place. */
  readonly waitMs?: number;
  readonly pace?: PaceRules;
}

export interface Slot {
  /** The size that the report was admitted as. */
  readonly size: Size;
  /** From now on the gate looks how fast the caller takes the answer. */
  sends(answer: Answer): void;
  /** Gives the slot back; calling it again does nothing. */
  leave(): void;
}

interface Asked {
  readonly account: string;
  readonly size: Size;
}

interface Waiting extends Asked {
  /** As performance.now() tells; earlier for a small report, which so goes before large ones that have just come. */
  readonly since: number;
  readonly admit: (slot: Slot) => void;
}

interface UnderWay extends Asked {
  answer?: Answer;
  /** Its caller takes next to nothing, so that it needs no place. */
  held: boolean;
}

const isLarge = ({ size }: Asked) => size === 'large';
const half = (places: number) => Math.ceil(places / 2);
/** How many places large reports may take: a quarter is kept for small ones. */
const forLarge = (places: number) => Math.max(1, places - Math.ceil(places / 4));

/**
 * A semaphore for reports, with two lanes and a share for each account. A report that nobody knows enters as small; when
 * it turns out to be large, it leaves and enters again.
 *
 * - Lanes: large reports leave a quarter of the places free, so that a small one is never stuck behind them, and a small
 *   one goes before large ones that have waited for less than half of the time. In a simulation of 32 callers and 8 places
 *   the 99th percentile of small reports was 0.16 to 0.19 s this way, and 0.5 to 0.8 s in order of arrival.
 * - Share: an account has at most half of the places, and not the last one if it has a report already. A place that gets
 *   free goes to the account with the fewest reports under way.
 * - A place is for work: a report whose caller takes next to nothing for a second is held up. It goes on without a place
 *   until its caller takes more. At most twice as many reports as there are places are under way.
 * - Slow accounts, whose callers hold up reports or had one broken off in the last minute, share half of it all.
 * - Least pace: while reports wait, one whose caller is too slow for long is broken off; so is, when no more can be under
 *   way, the held-up one that takes least, first of accounts that had one broken off. Nobody is broken off while nobody
 *   waits.
 */
export class ReportGate {
  readonly maxConcurrent: number;
  readonly maxPerAccount: number;
  readonly waitSeconds: number;
  readonly pace: PaceRules;
  readonly #waitMs: number;
  readonly #underWay = new Set<UnderWay>();
  readonly #waiting = new Set<Waiting>();
  /** When an account whose report was broken off is no longer a slow one. */
  readonly #slowUntil = new Map<string, number>();
  #ticks: NodeJS.Timeout | undefined;

  constructor({ maxConcurrent, waitMs = 5_000, pace = defaultPaceRules }: ReportGateOptions) {
    this.maxConcurrent = maxConcurrent;
    this.maxPerAccount = half(maxConcurrent);
    this.waitSeconds = Math.ceil(waitMs / 1000);
    this.pace = pace;
    this.#waitMs = waitMs;
  }

  /** Reports that have a place. */
  get running(): number {
    return this.#working().length;
  }

  /** Reports that are held up by their callers. */
  get held(): number {
    return this.#underWay.size - this.running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for a slot.
   * @param size large if the report is known to be; what enters as small must not stay for long
   * @throws {Problem} `too_many_reports` when the wait is too long or the caller gone
   */
  async enter(account: string, size: Size, signal: AbortSignal): Promise<Slot> {
    if (this.#fits({ account, size })) return this.#take({ account, size });
    return new Promise((resolve, reject) => {
      const forget = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', refuse);
        this.#waiting.delete(waiting);
      };
      const refuse = () => {
        forget();
        reject(this.#refusal());
      };
      const admit = (slot: Slot) => {
        forget();
        resolve(slot);
      };
      const headStart = size === 'small' ? this.#waitMs / 2 : 0;
      const waiting = { account, size, since: performance.now() - headStart, admit };
      const timer = setTimeout(refuse, this.#waitMs);
      signal.addEventListener('abort', refuse, { once: true });
      this.#waiting.add(waiting);
      // The signal of a caller that has left already fired and will not fire again.
      if (signal.aborted) refuse();
      else this.#breakOffSlow();
    });
  }

  /** Does work in a slot. @throws as `enter` */
  async within<Result>(
    account: string,
    size: Size,
    signal: AbortSignal,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const slot = await this.enter(account, size, signal);
    try {
      return await work();
    } finally {
      slot.leave();
    }
  }

  #fits(asked: Asked): boolean {
    const working = this.#working();
    if (working.length >= this.maxConcurrent) return false;
    const slow = this.#isSlow(asked.account);
    if (this.#underWay.size >= this.maxConcurrent + (slow ? half(this.maxConcurrent) : this.maxConcurrent))
      return false;
    const own = [...this.#underWay].filter(({ account }) => account === asked.account);
    const hasRoom = (places: number, share: number, taken: readonly Asked[], ofAccount: number) =>
      ofAccount < share &&
      // The last place is for an account without a report.
      taken.length + (ofAccount > 0 ? 1 : 0) < places &&
      !(slow && taken.filter(({ account }) => this.#isSlow(account)).length >= half(places));
    const { maxConcurrent, maxPerAccount } = this;
    return (
      hasRoom(maxConcurrent, maxPerAccount, working, own.length) &&
      (asked.size === 'small' ||
        hasRoom(
          forLarge(maxConcurrent),
          forLarge(maxPerAccount),
          working.filter(isLarge),
          own.filter(isLarge).length,
        ))
    );
  }

  #take(asked: Asked): Slot {
    const report: UnderWay = { ...asked, held: false };
    this.#underWay.add(report);
    return {
      size: asked.size,
      sends: (answer) => {
        report.answer = answer;
        this.#ticks ??= setInterval(() => this.#tick(), this.pace.tickMs);
      },
      leave: () => this.#leave(report),
    };
  }

  #leave(report: UnderWay): void {
    if (!this.#underWay.delete(report)) return;
    if (this.#underWay.size === 0) {
      clearInterval(this.#ticks);
      this.#ticks = undefined;
    }
    this.#admit(report);
  }

  /**
   * Gives free places away: to the account with the fewest reports under way, then in order of arrival, where small
   * reports have a head start of half the time that reports wait.
   * @param left counts still, so that an account which asks for much does not follow itself
   */
  #admit(...left: Asked[]): void {
    while (this.#waiting.size > 0 && this.running < this.maxConcurrent) {
      const counts = new Map<string, number>();
      for (const { account } of [...this.#underWay, ...left])
        counts.set(account, (counts.get(account) ?? 0) + 1);
      const countOf = ({ account }: Asked) => counts.get(account) ?? 0;
      let next: Waiting | undefined;
      for (const each of this.#waiting) {
        const later = next ? countOf(each) - countOf(next) || each.since - next.since : -1;
        if (later < 0 && this.#fits(each)) next = each;
      }
      if (!next) return;
      next.admit(this.#take(next));
    }
  }

  #tick(): void {
    for (const report of this.#underWay) {
      report.answer?.tick();
      report.held = report.answer?.pace.isBelow(this.pace.held) ?? false;
    }
    this.#admit();
    this.#breakOffSlow();
  }

  #breakOffSlow(): void {
    const { tooSlow } = this.pace;
    for (const report of this.#underWay) {
      if (this.#waiting.size === 0) return;
      if (!report.answer?.pace.isBelow(tooSlow)) continue;
      this.#breakOff(report, `less than ${tooSlow.bytesPerSecond / 1024} KiB/s for ${tooSlow.ms / 1000} s`);
    }
    while (
      this.#underWay.size >= 2 * this.maxConcurrent &&
      this.running < this.maxConcurrent &&
      [...this.#waiting].some(({ account }) => !this.#isSlow(account))
    ) {
      const slowest = this.#slowest();
      if (!slowest) return;
      this.#breakOff(slowest, 'the slowest where no more reports can be under way');
    }
  }

  /**
   * The held-up report that takes least, unless it is known to keep the least pace. In its first seconds a slow caller
   * looks like one that takes nothing, so a report of an account that had one broken off lately goes first.
   */
  #slowest(): UnderWay | undefined {
    const paceOf = ({ answer }: UnderWay) => answer?.pace ?? { recentBytes: 0, stillMs: 0 };
    const first = ({ account }: UnderWay) => (this.#wasBrokenOff(account) ? 0 : 1);
    return [...this.#underWay]
      .filter(({ held, answer }) => held && answer?.pace.isBelow(this.pace.tooSlow) !== false)
      .toSorted(
        (a, b) =>
          first(a) - first(b) ||
          paceOf(a).recentBytes - paceOf(b).recentBytes ||
          paceOf(b).stillMs - paceOf(a).stillMs,
      )[0];
  }

  #breakOff(report: UnderWay, how: string): void {
    this.#slowUntil.set(report.account, performance.now() + this.pace.rememberMs);
    report.answer?.breakOff(
      new BrokenOff('caller_too_slow', `the caller took the answer too slowly while others waited: ${how}`),
    );
    this.#leave(report);
  }

  /** Whether callers of the account hold up a report, or had one broken off lately. */
  #isSlow(account: string): boolean {
    return (
      this.#wasBrokenOff(account) || [...this.#underWay].some((each) => each.held && each.account === account)
    );
  }

  /** Whether a report of the account was broken off in the last minute. */
  #wasBrokenOff(account: string): boolean {
    if ((this.#slowUntil.get(account) ?? 0) > performance.now()) return true;
    this.#slowUntil.delete(account);
    return false;
  }

  #working(): UnderWay[] {
    return [...this.#underWay].filter(({ held }) => !held);
  }

  #refusal(): Problem {
    const seconds = this.waitSeconds;
    const detail = `too many reports are running; try again in ${seconds} s`;
    return new Problem('too_many_reports', detail, retryIn(seconds));
  }
}
