import { rollupTable } from '../../../catalog/breakdowns.ts';
import type { Reader } from '../../../clickhouse/reader.ts';
import type { ReportFormatName } from '../formats.ts';
import type { Plan } from '../plan.ts';
import type { ContentCoding } from '../stream.ts';
import { Collector, maxAnswerBytes } from './collector.ts';
import { type Answer, type AnswerFacts, type Memory, openMemory } from './memory.ts';
import { type Packed, pack, unpack } from './packed.ts';
import type { StoreVersion } from './store-version.ts';
import { UnconfirmedDays } from './unconfirmed-days.ts';

/** How a request is answered, and what Cache-Status (RFC 9211) says of it. */
export type Found =
  | FoundAnswer
  | { readonly status: string; readonly answer?: undefined; readonly ask: Asking };

export interface FoundAnswer {
  readonly status: string;
  readonly answer: Answer;
  packed(coding: ContentCoding, headBytes: number): Promise<Packed>;
}

/** What is known of an answer before anybody computes it. */
export interface Seen {
  /** Other data may mean another answer: the same text stands for the same answer, in every process. */
  readonly version?: string;
  readonly kept?: FoundAnswer;
}

/** A report that has to be asked for. */
export interface Asking {
  /** Whether it took only a moment when it was asked for last; undefined if that is unknown. */
  readonly wasSmall: boolean | undefined;
  /** The unconfirmed days of its range, from memory if possible. */
  unconfirmedDates(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * What the answer goes through, which keeps it once it is whole, if it is small. Nothing if it was too large before.
   */
  collect(facts: AnswerFacts, coding: ContentCoding, head: Buffer): Collector[];
  /** To be called in the end, however it ends: others may be waiting. */
  end(): void;
}

export interface AnswersOptions {
  readonly reader: Reader;
  readonly version: StoreVersion;
  /** For everything that is kept; 0 keeps nothing. */
  readonly maxBytes: number;
  readonly onError: (error: unknown) => void;
}

/**
 * Answers that are kept as long as they are true: while the partitions they were read from, the confirmations and the
 * names are as they were. Equal requests at the same moment share one statement.
 */
export class Answers {
  readonly #options: AnswersOptions;
  readonly #memory: Memory;
  readonly #days: UnconfirmedDays;
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

  /** The answer from memory, or how to get it; waits for an equal request that is under way. */
  async find(plan: Plan, format: ReportFormatName): Promise<Found> {
    const { version, maxBytes } = this.#options;
    // The metadata of one replica do not tell what another one answers.
    const store = maxBytes > 0 && !plan.routing?.replicated ? await version.current() : undefined;
    if (!store) return { status: 'fwd=bypass', ask: this.#ask(plan) };
    const key = keyOf(plan, format);
    const state = store.ofReport(plan);
    const kept = this.#memory.get(key);
    if (kept?.answer && kept.state === state) return this.#found('hit', key, kept.answer);
    const status = kept?.answer ? 'fwd=stale' : 'fwd=uri-miss';
    const daysState = store.ofUnconfirmedDays(plan);
    const wasSmall = kept && (kept.answer ? kept.answer.tookMs < smallMs || undefined : false);
    const to = { key, state, collects: true, wasSmall };
    // Nobody waits for an answer that is likely to be too large again.
    if (kept && !kept.answer)
      return { status, ask: this.#ask(plan, daysState, { ...to, collects: kept.state !== state }) };
    const flight = `${state} ${key}`;
    const other = this.#underWay.get(flight);
    if (!other) return { status, ask: this.#ask(plan, daysState, { ...to, flight }) };
    const answer = await other;
    if (answer) return this.#found(`${status}; collapsed`, key, answer);
    return { status, ask: this.#ask(plan, daysState, to) };
  }

  /** What the answer would be now, if memory or the state of the store tells; asks ClickHouse for no report. */
  async look(plan: Plan, format: ReportFormatName): Promise<Seen> {
    const store = plan.routing?.replicated ? undefined : await this.#options.version.current();
    if (!store) return {};
    const key = keyOf(plan, format);
    const kept = this.#memory.get(key);
    return {
      version: `${key} ${store.digestOfReport(plan)}`,
      ...(kept?.answer &&
        kept.state === store.ofReport(plan) && { kept: this.#found('hit', key, kept.answer) }),
    };
  }

  #found(status: string, key: string, answer: Answer): FoundAnswer {
    return { status, answer, packed: (coding, headBytes) => this.#pack(key, answer, coding, headBytes) };
  }

  async #pack(key: string, answer: Answer, coding: ContentCoding, headBytes: number): Promise<Packed> {
    const known = this.#memory.peek(key);
    const before = known?.answer === answer ? known.packed?.get(coding) : undefined;
    if (before?.headBytes === headBytes) return before.packed;
    const packed = await pack(coding, answer.body, headBytes);
    const kept = this.#memory.peek(key);
    if (kept?.answer === answer) {
      this.#memory.set(key, { ...kept, packed: new Map(kept.packed).set(coding, { packed, headBytes }) });
    }
    return packed;
  }

  /**
   * @param daysState what the unconfirmed days depend on
   * @param to where the answer is to be kept
   */
  #ask(plan: Plan, daysState?: string, to?: Destination): Asking {
    const settle = to?.flight === undefined ? () => {} : this.#begin(to.flight);
    let whole = false;
    return {
      wasSmall: to?.wasSmall,
      unconfirmedDates: (signal) => this.#days.of(plan, daysState, signal),
      collect: (facts, coding, head) => {
        if (!to?.collects) return [];
        const onTooLarge = () => {
          this.#memory.set(to.key, { state: to.state });
          settle();
        };
        const onWhole = (bytes: Buffer) => {
          whole = true;
          this.#keep(to, { ...facts, coding, head, bytes }).then(settle, (error: unknown) => {
            settle();
            this.#options.onError(error);
          });
        };
        return [new Collector({ onTooLarge, onWhole })];
      },
      end: () => {
        if (!whole) settle();
      },
    };
  }

  /** Others wait for this answer until the returned function is called. */
  #begin(flight: string): (answer?: Answer) => void {
    let resolve: (answer?: Answer) => void = () => {};
    const answer = new Promise<Answer | undefined>((settle) => {
      resolve = settle;
    });
    this.#underWay.set(flight, answer);
    return (answer) => {
      this.#underWay.delete(flight);
      resolve(answer);
    };
  }

  async #keep(
    { key, state }: Destination,
    { coding, head, bytes, ...facts }: AnswerFacts & { coding: ContentCoding; head: Buffer; bytes: Buffer },
  ): Promise<Answer | undefined> {
    const text = await unpack(coding, bytes, maxAnswerBytes);
    if (!text) this.#memory.set(key, { state });
    if (!text?.subarray(0, head.length).equals(head)) return undefined;
    const answer = { ...facts, body: Buffer.from(text.subarray(head.length)) };
    this.#memory.set(key, { state, answer });
    return answer;
  }
}

/** A report that took no longer is small: a busy ClickHouse takes ten times as long for it as an idle one. */
const smallMs = 100;

interface Destination {
  readonly key: string;
  readonly wasSmall: boolean | undefined;
  readonly state: string;
  readonly collects: boolean;
  /** What others who wait for the answer look for. */
  readonly flight?: string;
}

/** Everything that the text of an answer depends on, besides the store. Only the account, at the end, is any text. */
function keyOf({ breakdown, range, routing, account }: Plan, format: ReportFormatName): string {
  const rows = `${rollupTable(breakdown.family, breakdown.dimensions)} ${breakdown.day}`;
  return `${rows} ${format} ${range.start} ${range.end} ${routing?.shards} ${account}`;
}
