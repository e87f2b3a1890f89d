import type { Pace } from './pace.ts';
import type { Size } from './report-queue.ts';
import { type Answer, BrokenOff } from './sending.ts';

export interface Report {
  readonly account: string;
  readonly size: Size;
  answer?: Answer;
  /** Its caller takes next to nothing, so that it needs no place. */
  held: boolean;
  broken: boolean;
}

/** What is under way, counted. */
export interface Tally {
  /** Those that have a place, by size; of slow accounts apart. */
  readonly running: Record<Size, number>;
  readonly runningOfSlow: Record<Size, number>;
  readonly ofAccount: Map<string, Record<Size, number>>;
}

/** Reports that were admitted and have not ended, and accounts whose callers are slow. */
export class UnderWay {
  readonly reports = new Set<Report>();
  readonly #rememberMs: number;
  /** When an account whose report was broken off is no longer a slow one. */
  readonly #slowUntil = new Map<string, number>();

  constructor(rememberMs: number) {
    this.#rememberMs = rememberMs;
  }

  get broken(): number {
    return [...this.reports].filter(({ broken }) => broken).length;
  }

  /** Whether callers of the account hold up a report, or had one broken off lately. */
  isSlow(account: string): boolean {
    return this.#wasSlow(account) || [...this.reports].some((each) => each.held && each.account === account);
  }

  #wasSlow(account: string): boolean {
    if ((this.#slowUntil.get(account) ?? 0) > performance.now()) return true;
    this.#slowUntil.delete(account);
    return false;
  }

  breakOff(report: Report, how: string): void {
    report.broken = true;
    this.#slowUntil.set(report.account, performance.now() + this.#rememberMs);
    report.answer?.breakOff(
      new BrokenOff('caller_too_slow', `the caller took the answer too slowly while others waited: ${how}`),
    );
  }

  tally(): Tally {
    const tally: Tally = {
      running: { small: 0, large: 0 },
      runningOfSlow: { small: 0, large: 0 },
      ofAccount: new Map(),
    };
    const holding = new Set([...this.reports].filter(({ held }) => held).map(({ account }) => account));
    for (const { account, size, held } of this.reports) {
      const counts = tally.ofAccount.get(account) ?? { small: 0, large: 0 };
      counts[size]++;
      tally.ofAccount.set(account, counts);
      if (held) continue;
      tally.running[size]++;
      if (holding.has(account) || this.#wasSlow(account)) tally.runningOfSlow[size]++;
    }
    return tally;
  }

  /**
   * What is broken off for a report of an account that has `own`: one of an account that was slow lately, then of the one
   * with the most, then the slowest; never one that is known to be taken at the least pace or more.
   */
  slowest(own: number, tally: Tally, least: Pace): Report | undefined {
    const ofAccount = ({ account }: Report) => countOf(account, tally);
    const rank = (report: Report) => [
      this.#wasSlow(report.account) ? 0 : 1,
      -ofAccount(report),
      report.answer?.pace.recentBytes ?? 0,
      -(report.answer?.pace.stillMs ?? 0),
    ];
    return [...this.reports]
      .filter(({ held, broken, answer }) => held && !broken && !answer?.pace.keepsUp(least))
      .filter((report) => own === 0 || ofAccount(report) > own + 1)
      .map((report) => ({ report, rank: rank(report) }))
      .toSorted((a, b) => a.rank.map((value, n) => value - (b.rank[n] ?? 0)).find(Boolean) ?? 0)[0]?.report;
  }
}

export function countOf(account: string, { ofAccount }: Tally): number {
  return both(ofAccount.get(account) ?? { small: 0, large: 0 });
}

export function both({ small, large }: Record<Size, number>): number {
  return small + large;
}
