import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { rollupTable } from '../../../catalog/breakdowns.ts';
import type { Reader } from '../../../clickhouse/reader.ts';
import { type Damage, questionedBy } from '../damage.ts';
import type { ReportFormatName } from '../formats.ts';
import type { Plan } from '../plan.ts';
import { envelopeEnd } from '../template.ts';
import { collect, maxAnswerBytes } from './collect.ts';
import { KnownSizes, slowMs } from './known-sizes.ts';
import { type Answer, type AnswerFacts, type Memory, openMemory } from './memory.ts';
import type { StoreState } from './store-state.ts';
import type { StoreVersion } from './store-version.ts';
import { UnconfirmedDays } from './unconfirmed-days.ts';

const stateWithinMs = 300;

/** How a request is answered, and what Cache-Status (RFC 9211) says of it. */
export type Found =
  | FoundAnswer
  | { readonly status: string; readonly answer?: undefined; readonly ask: Asking };

export interface FoundAnswer {
  readonly status: string;
  readonly answer: Answer;
}

/** What is known of an answer before anybody computes it. */
export interface Seen {
  /** Other data may mean another answer: the same text stands for the same answer, in every process. */
  readonly version?: string;
}

/** A report that has to be computed. */
export interface Asking {
  /** What it is taken for: small, until it or one like it turned out to be large. */
  readonly size: 'small' | 'large';
  /** Whether it may be short enough to be collected and kept. */
  readonly mayBeKept: boolean;
  /** The unconfirmed days of its range, from memory if possible. */
  unconfirmedDates(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * The whole answer, kept if it can be; undefined if it is too long.
   * @param body what the statement writes, uncompressed, without what follows from the time of the request and the days
   * @throws when the body breaks off or the days cannot be read, or what the answer is made of is damaged
   */
  collect(
    body: Promise<Readable>,
    dates: Promise<readonly string[]>,
    facts: Omit<AnswerFacts, 'unconfirmedDates'>,
  ): Promise<FoundAnswer | undefined>;
  /** To be called before anything is sent of what was not collected. @throws {DamagedFigures} */
  requireWhole(): Promise<void>;
  /** To be called when it has been at work for long. */
  isSlow(): void;
  /** To be called in the end, however it ends: others may be waiting. */
  end(): void;
}

export interface AnswersOptions {
  readonly reader: Reader;
  readonly version: StoreVersion;
  readonly damage: Damage;
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
    const asked = { plan, format };
    const bypass = async () => {
      // Asked before, too: a repair that ends while the report runs would take away what tells of the damage.
      await damage.requireWhole(questionedBy(plan));
      return this.#ask(asked, 'fwd=bypass');
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
      return this.#ask(asked, 'fwd=uri-miss', { key, state: before.ofReport(plan), current });
    }
    const store = await current;
    if (!store) return bypass();
    const state = store.ofReport(plan);
    const kept = this.#memory.get(key);
    if (kept?.answer && kept.state === state) return { status: 'hit', answer: kept.answer };
    const status = kept?.answer ? 'fwd=stale' : 'fwd=uri-miss';
    const other = this.#underWay.get(flightOf(key, state));
    // Nobody waits for an answer that is likely to be too long to be kept.
    if (other && !this.#sizes.has('too long', plan, format)) {
      const answer = await other;
      if (answer) return { status: `${status}; collapsed`, answer };
    }
    return this.#ask(asked, status, { key, state, current });
  }

  /** What the answer would be now, if memory or the state of the store tells; asks ClickHouse for no report. */
  async look(plan: Plan, format: ReportFormatName): Promise<Seen> {
    const { version, damage } = this.#options;
    const store = await version.of(plan);
    if (!store) return {};
    damage.refuse(questionedBy(plan));
    return { version: `${keyOf(plan, format)} ${store.digestOfReport(plan)}` };
  }

  #ask({ plan, format }: Asked, status: string, to?: Destination): Found {
    const sizes = this.#sizes;
    const mayBeKept = !sizes.has('too long', plan, format);
    const requireWhole = async () => {
      // The state tells of damage, too, and is mostly there already.
      await soon(to?.current);
      await this.#options.damage.requireWhole(questionedBy(plan));
    };
    const settle = to && mayBeKept ? this.#begin(flightOf(to.key, to.state)) : () => {};
    const ask: Asking = {
      size: mayBeKept && !sizes.has('slow', plan, format) ? 'small' : 'large',
      mayBeKept,
      unconfirmedDates: async (signal) =>
        this.#days.of(plan, (await soon(to?.current))?.ofUnconfirmedDays(plan), signal),
      collect: async (body, dates, facts) => {
        const startedAt = performance.now();
        const [rows, unconfirmedDates] = await Promise.all([
          body.then((stream) => collect(stream, maxAnswerBytes, facts.query)),
          dates,
        ]);
        if (!rows) {
          sizes.add('too long', plan, format);
          settle();
          return undefined;
        }
        await requireWhole();
        if (performance.now() - startedAt < slowMs) sizes.delete('slow', plan, format);
        const end = format === 'json' ? envelopeEnd(unconfirmedDates) : '';
        const answer = { ...facts, unconfirmedDates, body: Buffer.concat([rows, Buffer.from(end)]) };
        if (to) this.#memory.set(to.key, { state: to.state, answer });
        settle(answer);
        return { status, answer };
      },
      requireWhole,
      isSlow: () => sizes.add('slow', plan, format),
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

interface Asked {
  readonly plan: Plan;
  readonly format: ReportFormatName;
}

/** Where an answer is kept. */
interface Destination {
  readonly key: string;
  /** Of the store, before the answer is read from it. */
  readonly state: string;
  /** The state of now, which the unconfirmed days are of. */
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
