import { Problem } from '../../problems.ts';
import { defaultPaceRules, type PaceRules } from './pace.ts';
import { ReportQueue, type Size } from './report-queue.ts';
import type { Answer } from './sending.ts';
import { both, countOf, type Report, UnderWay } from './under-way.ts';

export interface ReportGateOptions {
  /** Reports that run at a time. */
  readonly maxConcurrent: number;
  /** Large reports that wait for a slot. */
  readonly maxWaitingLarge?: number;
  /** Small reports that wait: each takes a moment, so more of them can be served in time. */
  readonly maxWaitingSmall?: number;
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

/**
 * Limits how many reports run at a time, overall and per account, with a short queue for each size. Large reports leave
 * some places free, overall and of an account, so that a small one is never stuck behind them. A report of which nobody
 * knows enters as small; when it turns out to be large, it leaves and enters again.
 *
 * Nobody can shut out the others:
 * - No account takes more than half of the places, nor the last one if it has a report already. A place that gets free
 *   goes to the account with the fewest reports under way.
 * - A place is for work. A report whose caller takes next to nothing for a second is held up: it goes on, but gives
 *   its place to the next until its caller takes more. At most twice as many reports as there are places are under way.
 * - Accounts whose callers hold up reports, or had one broken off in the last minute, come last and share half of it all.
 * - While reports wait, one whose caller is too slow for long is broken off; so is, when no more can be under way, a
 *   held-up one, of a slow account first. Nobody is broken off while nobody waits.
 */
export class ReportGate {
  readonly maxConcurrent: number;
  readonly maxPerAccount: number;
  readonly waitSeconds: number;
  readonly pace: PaceRules;
  readonly #queue: ReportQueue<Slot>;
  readonly #underWay: UnderWay;
  #ticks: NodeJS.Timeout | undefined;

  constructor({
    maxConcurrent,
    maxWaitingLarge = 4 * maxConcurrent,
    maxWaitingSmall = 16 * maxConcurrent,
    waitMs = 5_000,
    pace = defaultPaceRules,
  }: ReportGateOptions) {
    this.maxConcurrent = maxConcurrent;
    this.maxPerAccount = Math.max(1, Math.ceil(maxConcurrent / 2));
    this.pace = pace;
    this.#underWay = new UnderWay(pace.rememberMs);
    this.waitSeconds = Math.ceil(waitMs / 1000);
    const most = { small: maxWaitingSmall, large: maxWaitingLarge };
    this.#queue = new ReportQueue({
      most,
      waitMs,
      isSlow: (account) => this.#underWay.isSlow(account),
      refusal: () => this.#refusal(),
    });
  }

  /** Reports that have a place. */
  get running(): number {
    return both(this.#underWay.tally().running);
  }

  /** Reports that are held up by their callers. */
  get held(): number {
    return this.#underWay.reports.size - this.running;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /**
   * Waits for a slot.
   * @param size large if the report is known to be; what enters as small must not stay for long
   * @throws {Problem} `too_many_reports` when the queue is full or the wait too long
   */
  async enter(account: string, size: Size, signal: AbortSignal): Promise<Slot> {
    if (this.#fits(account, size)) return this.#take(account, size);
    const slot = this.#queue.wait(account, size, signal);
    this.#breakOffSlow();
    return slot;
  }

  #fits(account: string, size: Size, tally = this.#underWay.tally()): boolean {
    const { small, large } = tally.ofAccount.get(account) ?? { small: 0, large: 0 };
    const slow = this.#underWay.isSlow(account);
    const hasRoom = (places: number, taken: number, ofSlow: number, own: number) =>
      // The last place is for an account that has none.
      taken + (own > 0 ? 1 : 0) < places && !(slow && ofSlow >= Math.ceil(places / 2));
    const { running, runningOfSlow } = tally;
    if (this.#underWay.reports.size >= this.#maxUnderWay(slow)) return false;
    if (small + large >= this.maxPerAccount) return false;
    if (!hasRoom(this.maxConcurrent, both(running), both(runningOfSlow), small + large)) return false;
    return (
      size === 'small' ||
      (large < forLarge(this.maxPerAccount) &&
        hasRoom(forLarge(this.maxConcurrent), running.large, runningOfSlow.large, large))
    );
  }

  /** Slow accounts leave some of it to others. */
  #maxUnderWay(slow: boolean): number {
    return this.maxConcurrent + (slow ? Math.ceil(this.maxConcurrent / 2) : this.maxConcurrent);
  }

  #take(account: string, size: Size): Slot {
    const report: Report = { account, size, held: false, broken: false };
    this.#underWay.reports.add(report);
    return {
      size,
      sends: (answer) => {
        report.answer = answer;
        this.#ticks ??= setInterval(() => this.#tick(), this.pace.tickMs);
      },
      leave: () => {
        if (!this.#underWay.reports.delete(report)) return;
        if (this.#underWay.reports.size === 0) {
          clearInterval(this.#ticks);
          this.#ticks = undefined;
        }
        this.#admit();
      },
    };
  }

  #admit(): void {
    let admitted = this.#queue.length > 0;
    while (admitted) {
      const tally = this.#underWay.tally();
      admitted = this.#queue.admitNext(
        (account, size) => this.#fits(account, size, tally),
        (account) => countOf(account, tally),
        (account, size) => this.#take(account, size),
      );
    }
  }

  #tick(): void {
    for (const report of this.#underWay.reports) {
      report.answer?.tick();
      report.held = report.answer?.pace.isBelow(this.pace.held) ?? false;
    }
    this.#admit();
    this.#breakOffSlow();
  }

  #breakOffSlow(): void {
    if (this.#queue.length === 0) return;
    const underWay = this.#underWay;
    const { bytesPerSecond, ms } = this.pace.tooSlow;
    for (const report of underWay.reports) {
      if (report.broken || !report.answer?.pace.isBelow(this.pace.tooSlow)) continue;
      underWay.breakOff(report, `less than ${bytesPerSecond / 1024} KiB/s for ${ms / 1000} s`);
    }
    if (underWay.reports.size < this.#maxUnderWay(false)) return;
    const tally = underWay.tally();
    let room = this.maxConcurrent - both(tally.running) - underWay.broken;
    for (const account of this.#queue.accounts) {
      if (room <= 0) return;
      if (underWay.isSlow(account)) continue;
      const slowest = underWay.slowest(countOf(account, tally), tally, this.pace.tooSlow);
      const counts = slowest && tally.ofAccount.get(slowest.account);
      if (!slowest || !counts) continue;
      underWay.breakOff(slowest, 'the slowest where no more reports can be under way');
      counts[slowest.size]--;
      room--;
    }
  }

  #refusal(): Problem {
    const seconds = this.waitSeconds;
    return new Problem('too_many_reports', `too many reports are running; try again in ${seconds} s`, {
      headers: { 'Retry-After': String(seconds) },
    });
  }
}

/** How many of the slots large reports may take: a quarter is kept for small ones. */
function forLarge(slots: number): number {
  return Math.max(1, slots - Math.ceil(slots / 4));
}
