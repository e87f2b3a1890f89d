import { setTimeout } from 'node:timers/promises';
import { rollupTable } from '../../../catalog/breakdowns.ts';
import type { Reader } from '../../../clickhouse/reader.ts';
import { requireSameThen } from '../as-of-moment.ts';
import { type Damage, questionedBy } from '../damage.ts';
import type { ReportFormatName } from '../formats.ts';
import type { Plan } from '../plan.ts';
import type { ReportStream } from '../stream.ts';
import { envelopeEnd } from '../template.ts';
import { collect } from './collect.ts';
import { KnownSizes, slowMs } from './known-sizes.ts';
import { type Answer, type Memory, openMemory } from './memory.ts';
import type { StoreState } from './store-state.ts';
import type { StoreVersion } from './store-version.ts';
import { UnconfirmedDays } from './unconfirmed-days.ts';

const stateWithinMs = 300;

/** How many others a request waits for before it computes its answer itself. */
const mostWaits = 2;

/** How a request is answered, and what Cache-Status (RFC 9211) says of it. */
export type Found =
  | { readonly status: string; readonly answer: Answer }
  | { readonly status: string; readonly answer?: undefined; readonly ask: Asking };

/** A report that has to be computed. */
export interface Asking {
  /** What it is taken for: small, until it or one like it turned out to be large. */
  readonly size: 'small' | 'large';
  /** Whether it, or one like it, turned out to be too long to be collected and kept. */
  isTooLong(): boolean;
  /** The unconfirmed days of its range, from memory if possible. */
  unconfirmedDates(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * The whole answer, kept if it can be; undefined if it is too long.
   * @param query the statement of the report
   * @param report what it writes, uncompressed, without what follows from the time of the request and the days
   * @throws when the body breaks off or the days cannot be read, and as `requireTrue`
   */
  collect(query: string, report: Promise<ReportStream>, signal: AbortSignal): Promise<Answer | undefined>;
  /**
   * To be called before anything is sent of what was not collected; `collect` calls it.
   * @throws {AsOfTooOld}
   * @throws {DamagedFigures}
   */
  requireTrue(signal: AbortSignal): Promise<void>;
  /** To be called when it has been at work for long: those like it begin as large. */
  tookLong(): void;
  /** To be called when it will not be collected any more, however it ends: others may be waiting. */
  end(): void;
}

export interface AnswersOptions {
  readonly reader: Reader;
  readonly version: StoreVersion;
  readonly damage: Damage;
  /** Of what reads as much as a report. */
  readonly timeoutSeconds: number;
  /** For everything that is kept; 0 keeps nothing. */
  readonly maxBytes: number;
}

/**
 * Answers that are kept as long as they are true: while the partitions they were read from, the confirmations and the
 * names are as they were. Equal requests at the same moment share one statement.
 */
export class Answers {
  readonly #options: AnswersOptions;
  readonly #memory: Memory;
  readonly #days: UnconfirmedDays;
  readonly #sizes = new KnownSizes();
  readonly #underWay = new Map<string, Promise<Answer | undefined>>();

  constructor(options: AnswersOptions) {
    this.#options = options;
    this.#memory = openMemory(options.maxBytes);
    this.#days = new UnconfirmedDays(options.reader, this.#memory);
  }

  get count(): number {
    return this.#memory.size;
  }

  get bytes(): number {
    return this.#memory.calculatedSize;
  }

  /**
   * The answer from memory, or how to get it; waits for an equal request that is under way.
   * @throws {DamagedFigures} when what is known to be damaged may have rows of it
   */
  async find(plan: Plan, format: ReportFormatName): Promise<Found> {
    const { version, damage, maxBytes } = this.#options;
    const bypass = async () => {
      // Asked before, too: a repair that ends while the report runs would take away what tells of the damage.
      await damage.requireWhole(questionedBy(plan));
      return this.#ask(plan, format, 'fwd=bypass');
    };
    // The state of the store does not tell when the ledger or what was taken away changes.
    if (maxBytes === 0 || plan.past || plan.closedAt !== undefined) return bypass();
    const key = keyOf(plan, format);
    const current = version.of(plan).then((state) => {
      if (state) damage.refuse(questionedBy(plan));
      return state;
    });
    current.catch(() => {});
    const before = this.#memory.has(key) || damage.hasParts ? undefined : version.known(plan);
    // What nobody has asked begins at once: its rows are of the state known before, or newer.
    if (before && !this.#underWay.has(flightOf(key, before.ofReport(plan)))) {
      return this.#ask(plan, format, 'fwd=uri-miss', { key, state: before.ofReport(plan), current });
    }
    const store = await current;
    if (!store) return bypass();
    const state = store.ofReport(plan);
    const kept = this.#memory.get(key);
    if (kept?.answer && kept.state === state) return { status: 'hit', answer: kept.answer };
    const status = kept?.answer ? 'fwd=stale' : 'fwd=uri-miss';
    // Nobody waits for an answer that is likely to be too long to be kept.
    for (let waits = 0; waits < mostWaits && !this.#sizes.has('too long', plan, format); waits++) {
      const other = this.#underWay.get(flightOf(key, state));
      if (!other) break;
      const answer = await other;
      if (answer) return { status: `${status}; collapsed`, answer };
      // It ended without one. The first of those who waited computes it, and the others wait once more.
    }
    return this.#ask(plan, format, status, { key, state, current });
  }

  /**
   * What the answer would be of now, if the state of the store tells; asks ClickHouse for no report. The same text stands
   * for the same answer, in every process.
   * @param asksHome as `StoreVersion.of` has it
   */
  async versionOf(plan: Plan, format: ReportFormatName, asksHome: boolean): Promise<string | undefined> {
    const { version, damage } = this.#options;
    const store = await version.of(plan, asksHome);
    if (!store) return undefined;
    damage.refuse(questionedBy(plan));
    return `${keyOf(plan, format)} ${store.digestOfReport(plan)}`;
  }

  #ask(plan: Plan, format: ReportFormatName, status: string, to?: Destination): Found {
    const sizes = this.#sizes;
    const isTooLong = () => sizes.has('too long', plan, format);
    const { reader, version, damage, timeoutSeconds } = this.#options;
    const unconfirmedDates = async (signal: AbortSignal) => {
      // Asked now: the report may have waited for its place, and days must not be older than rows.
      const now = to && (await soon(version.of(plan)));
      return this.#days.of(plan, now?.ofUnconfirmedDays(plan), signal);
    };
    const requireTrue = async (signal: AbortSignal) => {
      const sameThen = () => requireSameThen(reader, plan, { signal, timeoutSeconds });
      await damage.orDamaged(questionedBy(plan), sameThen);
      // The state tells of damage, too, and is mostly there already.
      await soon(to?.current);
      await damage.requireWhole(questionedBy(plan));
    };
    const settle = to && !isTooLong() ? this.#begin(flightOf(to.key, to.state)) : () => {};
    const ask: Asking = {
      size: isTooLong() || sizes.has('slow', plan, format) ? 'large' : 'small',
      isTooLong,
      unconfirmedDates,
      requireTrue,
      collect: async (query, report, signal) => {
        const startedAt = performance.now();
        const [rows, { summary }, days] = await Promise.all([
          report.then(({ body }) => collect(body, query)),
          report,
          unconfirmedDates(signal),
        ]);
        if (!rows) {
          sizes.add('too long', plan, format);
          settle();
          return undefined;
        }
        await requireTrue(signal);
        if (performance.now() - startedAt < slowMs) sizes.delete('slow', plan, format);
        const end = format === 'json' ? envelopeEnd(days) : '';
        const body = Buffer.concat([rows, Buffer.from(end)]);
        const answer = { body, unconfirmedDates: days, summary, query, rows: {} };
        if (to) this.#memory.set(to.key, { state: to.state, answer });
        settle(answer);
        return answer;
      },
      tookLong: () => sizes.add('slow', plan, format),
      end: settle,
    };
    return { status, ask };
  }

  /** Others wait for this answer until the returned function is called. */
  #begin(flight: string): (answer?: Answer) => void {
    let resolve: (answer?: Answer) => void = () => {};
    const answer = new Promise<Answer | undefined>((settle) => {
      resolve = settle;
    });
    this.#underWay.set(flight, answer);
    return (whole) => {
      if (this.#underWay.get(flight) === answer) this.#underWay.delete(flight);
      resolve(whole);
    };
  }
}

/** Where an answer is kept. */
interface Destination {
  readonly key: string;
  /** Of the store, before the answer is read from it. */
  readonly state: string;
  /** The state as the report was asked for, which tells of damage. */
  readonly current: Promise<StoreState | undefined>;
}

/** A request that has a place does not wait for a store that takes long to tell its state. */
const soon = <T>(state: Promise<T> | undefined): Promise<T | undefined> =>
  Promise.race([state, setTimeout(stateWithinMs, undefined, { ref: false })]);

/** What others who wait for the answer look for. */
const flightOf = (key: string, state: string) => `${state} ${key}`;

/** Everything that the text of an answer depends on, besides the store. Only the options and the account are any text. */
function keyOf(
  { breakdown, range, options, currency, routing, account, closed, adjusted }: Plan,
  format: ReportFormatName,
): string {
  const rows = `${rollupTable(breakdown.family, breakdown.dimensions)} ${breakdown.day}`;
  // JSON has an end that can be told, so that the account can follow it.
  const asked = JSON.stringify([options, closed, adjusted]);
  return `${rows} ${format} ${currency} ${range.start} ${range.end} ${routing?.shards} ${asked} ${account}`;
}
