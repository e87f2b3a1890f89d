import { Problem } from '../../problems.ts';
import { defaultPaceRules, type PaceRules } from './pace.ts';
import { ReportQueue, type Size } from './report-queue.ts';
import { type Answer, BrokenOff } from './sending.ts';

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
  /** The size the report was admitted as; large if nobody needed to know. */
  readonly size: Size;
  /** From now on the gate looks how fast the caller takes the answer. */
  sends(answer: Answer): void;
  /** Gives the slot back; calling it again does nothing. */
  leave(): void;
}

interface Report {
  readonly account: string;
  readonly size: Size;
  answer?: Answer;
  /** Its caller takes next to nothing, so that it needs no place. */
  held: boolean;
  broken: boolean;
}

/** What is under way, counted. */
interface Tally {
  running: number;
  runningLarge: number;
  readonly ofAccount: Map<string, Record<Size, number>>;
}

/**
 * Limits how many reports run at a time, overall and per account, with a short queue for each size. Large reports leave
 * some places free, overall and of an account, so that a small one is never stuck behind them.
 *
 * Nobody can shut out the others:
 * - No account takes more than half of the places, nor the last one if it has a report already. A place that gets free
 *   goes to the account with the fewest reports under way.
 * - A place is for work. A report whose caller takes next to nothing for a second is held up: it goes on, but gives
 *   its place to the next until its caller takes more. At most twice as many reports as there are places are under way.
 * - While reports wait, one whose caller is too slow for long is broken off; so is, when no more can be under way, a
 *   held-up one of the account with the most. Nobody is broken off while nobody waits.
 */
export class ReportGate {
  readonly maxConcurrent: number;
  readonly maxPerAccount: number;
  readonly waitSeconds: number;
  readonly pace: PaceRules;
  readonly #queue: ReportQueue<Slot>;
  readonly #underWay = new Set<Report>();
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
    this.waitSeconds = Math.ceil(waitMs / 1000);
    const most = { small: maxWaitingSmall, large: maxWaitingLarge };
    this.#queue = new ReportQueue({
      most,
      waitMs,
      heldOf: (wanted) =>
        [...this.#underWay].filter(({ account, held }) => held && account === wanted).length,
      refusal: () => this.#refusal(),
    });
  }

  /** Reports that have a place. */
  get running(): number {
    return this.#tally().running;
  }

  /** Reports that are held up by their callers. */
  get held(): number {
    return this.#underWay.size - this.running;
  }

  get waiting(): number {
    return this.#queue.length;
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
      if (this.#queue.isFull(account, 'small') && this.#queue.isFull(account, 'large')) throw this.#refusal();
      size = (await isSmall()) ? 'small' : 'large';
    }
    if (this.#fits(account, size)) return this.#take(account, size);
    const slot = this.#queue.wait(account, size, signal);
    this.#breakOffSlow();
    return slot;
  }

  #fits(account: string, size: Size, tally = this.#tally()): boolean {
    const { small, large } = tally.ofAccount.get(account) ?? { small: 0, large: 0 };
    // The last place is for an account that has none.
    const hasRoom = (taken: number, own: number, places: number) => taken + (own > 0 ? 1 : 0) < places;
    if (this.#underWay.size >= 2 * this.maxConcurrent || small + large >= this.maxPerAccount) return false;
    if (!hasRoom(tally.running, small + large, this.maxConcurrent)) return false;
    return (
      size === 'small' ||
      (large < forLarge(this.maxPerAccount) &&
        hasRoom(tally.runningLarge, large, forLarge(this.maxConcurrent)))
    );
  }

  #take(account: string, size: Size): Slot {
    const report: Report = { account, size, held: false, broken: false };
    this.#underWay.add(report);
    return {
      size,
      sends: (answer) => {
        report.answer = answer;
        this.#ticks ??= setInterval(() => this.#tick(), this.pace.tickMs);
      },
      leave: () => {
        if (!this.#underWay.delete(report)) return;
        if (this.#underWay.size === 0) {
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
      const tally = this.#tally();
      admitted = this.#queue.admitNext(
        (account, size) => this.#fits(account, size, tally),
        (account) => reportsOf(account, tally),
        (account, size) => this.#take(account, size),
      );
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
    if (this.#queue.length === 0) return;
    const { bytesPerSecond, ms } = this.pace.tooSlow;
    for (const report of this.#underWay) {
      if (!report.answer?.pace.isBelow(this.pace.tooSlow)) continue;
      breakOff(report, `less than ${bytesPerSecond / 1024} KiB/s for ${ms / 1000} s`);
    }
    if (this.#underWay.size < 2 * this.maxConcurrent) return;
    const tally = this.#tally();
    let room = this.maxConcurrent - tally.running - [...this.#underWay].filter(({ broken }) => broken).length;
    for (const account of this.#queue.accounts) {
      if (room <= 0) return;
      const slowest = this.#slowest(reportsOf(account, tally), tally);
      const counts = slowest && tally.ofAccount.get(slowest.account);
      if (!slowest || !counts) continue;
      breakOff(slowest, 'the slowest where no more reports can be under way');
      counts[slowest.size]--;
      room--;
    }
  }

  /** Of the accounts with the most reports under way, and more than an account that waits: the slowest held-up one. */
  #slowest(own: number, tally: Tally): Report | undefined {
    return [...this.#underWay]
      .filter(({ account, held, broken }) => {
        const count = reportsOf(account, tally);
        return held && !broken && (own === 0 || count > own + 1);
      })
      .toSorted((a, b) => {
        const counted = reportsOf(b.account, tally) - reportsOf(a.account, tally);
        const [ofA, ofB] = [a.answer?.pace, b.answer?.pace];
        const taken = (ofA?.recentBytes ?? 0) - (ofB?.recentBytes ?? 0);
        return counted || taken || (ofB?.stillMs ?? 0) - (ofA?.stillMs ?? 0);
      })[0];
  }

  #tally(): Tally {
    const tally: Tally = { running: 0, runningLarge: 0, ofAccount: new Map() };
    for (const { account, size, held } of this.#underWay) {
      if (!held) tally.running++;
      if (!held && size === 'large') tally.runningLarge++;
      const counts = tally.ofAccount.get(account) ?? { small: 0, large: 0 };
      counts[size]++;
      tally.ofAccount.set(account, counts);
    }
    return tally;
  }

  #refusal(): Problem {
    const seconds = this.waitSeconds;
    return new Problem('too_many_reports', `too many reports are running; try again in ${seconds} s`, {
      headers: { 'Retry-After': String(seconds) },
    });
  }
}

function breakOff(report: Report, how: string): void {
  report.broken = true;
  report.answer?.breakOff(
    new BrokenOff('caller_too_slow', `the caller took the answer too slowly while others waited: ${how}`),
  );
}

function reportsOf(account: string, { ofAccount }: Tally): number {
  const { small, large } = ofAccount.get(account) ?? { small: 0, large: 0 };
  return small + large;
}

/** How many of the slots large reports may take: a quarter is kept for small ones. */
function forLarge(slots: number): number {
  return Math.max(1, slots - Math.ceil(slots / 4));
}
