import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../clickhouse/client.ts';
import { earlyTimerMs } from '../../clickhouse/timings.ts';
import { smallInputBytes } from '../../ingest/chunks/text-chunks.ts';
import { shownRejects } from '../../ingest/delivery/chunk-outcome.ts';
import { ChannelMoved } from '../../ingest/delivery/loaded-otherwise.ts';
import { type InputIdentity, mappedReading } from '../../ingest/event/reading.ts';
import type { Format } from '../../ingest/formats/format.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { replacementOfAll } from '../../ingest/history/replacements.ts';
import { heldInput, pushedFrom } from '../../ingest/input/held-input.ts';
import { forSenders } from '../../ingest/input/option-hint.ts';
import { type LoadCounts, noCounts } from '../../ingest/ledger/load.ts';
import { alreadyLoaded } from '../../ingest/load/already-loaded.ts';
import { noteCommitted } from '../../ingest/load/channels.ts';
import {
  type EventLoadOptions,
  type LoadResult,
  loadEvents,
  senders,
} from '../../ingest/load/load-events.ts';
import { slots } from '../../ingest/load/parallel.ts';
import { firstReasons, type LoadedChunk, loadedChunk } from '../../ingest/load/receipt.ts';
import { inGroups } from './groups.ts';
import { type Body, inChannel, type Piece } from './pieces.ts';
import type { Received } from './received.ts';

export interface ReceivedBody extends Body {
  /** What names the body beside its content; absent: its content alone does. */
  readonly key: string | undefined;
  /** Of a body that is a piece of a stream of records. */
  readonly piece: Piece | undefined;
}

export interface BodyLoaderOptions {
  readonly store: Store;
  /** How long services of reports believe what they knew of the store. */
  readonly answerTrustMs: number;
  /** Ends loads after the chunks in flight. */
  readonly signal: AbortSignal;
  /** Called with what this body has stored, and what was stored before. The answer does not tell: a body that comes again gets that of the first. */
  readonly onLoaded: (counts: Readonly<LoadCounts>) => void;
  readonly onWarning: (sender: string, text: string) => void;
}

/** So many small bodies share two statements that store them. */
const smallAtOnce = 256;
/** They share the statements to the ledger; what they hold is bounded by the room. */
const largeAtOnce = 8;

/** Loads bodies as files are loaded: a body is an input that is in memory. */
export class BodyLoader {
  readonly #options: BodyLoaderOptions;
  readonly #small = slots(smallAtOnce);
  readonly #large = slots(largeAtOnce);
  readonly #sends = slots(senders);
  readonly #group = inGroups();
  readonly #running = new Set<Promise<unknown>>();
  /** Loads whose chunk is going to be stored with those of others. */
  #bundled = 0;

  constructor(options: BodyLoaderOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the ledger says that the body is loaded and reports show it.
   * @throws {InputError} for a body that cannot be read, {LoadError} when ClickHouse fails, {@link Stopped} after the signal
   */
  async load(body: ReceivedBody): Promise<Received> {
    const { piece } = body;
    if (!piece) return this.#loadNamed(body, identityOf(body));
    return inChannel(this.#options, { ...body, piece }, (channel) => this.#loadNamed(body, { channel }));
  }

  async #loadNamed(body: ReceivedBody, named: Partial<InputIdentity>): Promise<Received> {
    const options = this.#loadOptions(body, named);
    const isSmall = body.bytes.length <= smallInputBytes;
    const work = async (leave: () => void, members: number) => {
      const result = await this.#loaded(options, members > 1 && isBundled(body), leave);
      this.#options.onLoaded(result);
      return this.#answer(result, named);
    };
    const small = (leaveSlot: () => void) =>
      this.#group((leaveGroup, members) =>
        work(() => {
          leaveGroup();
          leaveSlot();
        }, members),
      );
    return this.watch(isSmall ? this.#small(small) : this.#large((leave) => work(leave, 1)));
  }

  /** @returns what the ledger says, when every report shows it */
  async #answer(result: LoadResult, { key, channel }: Partial<InputIdentity>): Promise<Received> {
    const { storedAt = performance.now(), places } = result;
    const { answerTrustMs } = this.#options;
    const shownAt = storedAt + answerTrustMs + earlyTimerMs;
    const received = await this.#receipt(result, key !== undefined);
    const position = places.reduce((sum, { rows }) => sum + rows, channel?.position ?? 0);
    if (channel && places.length > 0) await noteCommitted(this.#options, { channel: channel.name, position });
    await delay(Math.max(0, shownAt - performance.now()));
    return { ...received, ...(channel && { committed: position }) };
  }

  /** Resolves when nothing is being loaded or watched. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** Lets `settled` wait for other work, too. */
  async watch<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  /**
   * @param bundled its chunk is stored with those of others; one alone is stored quicker by itself
   * @param leave called where another load of what begins alike has to end first, which may take long
   */
  async #loaded(options: EventLoadOptions, bundled: boolean, leave: () => void): Promise<LoadResult> {
    const { begins, loaded } = await alreadyLoaded(options, (error) => {
      throw error;
    });
    const isPiece = options.reading?.channel !== undefined;
    if (isPiece && begins === '') return { ...noCounts(), openRejects: 0, places: [] };
    if (isPiece && loaded) throw new ChannelMoved('another load has gone on with the channel meanwhile');
    if (loaded) return loaded;
    let counts = bundled;
    if (counts) this.#bundled++;
    const end = () => {
      if (counts) this.#bundled--;
      counts = false;
    };
    const onWait = () => {
      end();
      leave();
    };
    const loads = bundled ? { loads: () => this.#bundled } : {};
    return loadEvents({ ...options, onWait, ...loads }).finally(end);
  }

  #loadOptions(
    { bytes, format, mapping, sender, key, piece }: ReceivedBody,
    named: Partial<InputIdentity>,
  ): EventLoadOptions {
    const { store, signal, onWarning } = this.#options;
    const of = piece ? `, channel ${piece.channel}` : '';
    const name = `${pushedFrom}${sender}${key === undefined ? of : `, key ${key}`}`;
    const { timezone, dates, roundMoney } = mapping;
    const reading = mappedReading(name, mapping, (text) => onWarning(sender, text));
    return {
      store,
      signal,
      format,
      roundMoney,
      ...(timezone && { timezone: timezone.name }),
      ...(dates && { dates }),
      input: heldInput(name, formats[format].endings.slice(0, 1), bytes),
      reading: { ...reading, ...named },
      now: () => new Date(),
      // Also, chunks of one piece are stored with those of other bodies.
      inTurn: this.#sends,
    };
  }

  /** What the ledger says, so that the answer to a body that comes again is that to the first. */
  async #receipt({ places, loadId }: LoadResult, keyed: boolean): Promise<Received> {
    const { store, answerTrustMs } = this.#options;
    const found = await Promise.all(places.map((place) => loadedChunk(this.#options, place)));
    const chunks = found.filter((each) => each !== undefined);
    if (chunks.length < places.length)
      throw new Error('the ledger does not say of all of the body that it is loaded');
    const own = chunks.filter(({ load }) => keyed || load === loadId);
    const sum = (of: readonly LoadedChunk[], figure: 'rows' | 'rejectedRows') =>
      of.reduce((total, each) => total + each[figure], 0);
    const faulty = places.filter(({ id }) =>
      chunks.some(({ chunk, rejectedRows }) => chunk === id && rejectedRows > 0),
    );
    const reasons = await Promise.all(faulty.map((place) => firstReasons(this.#options, place)));
    const last = chunks.reduce<LoadedChunk | undefined>(
      (latest, each) => (latest && latest.loadedAt > each.loadedAt ? latest : each),
      undefined,
    );
    const accepted = sum(own, 'rows');
    const cameBefore = chunks.every(({ load }) => load !== loadId);
    const replacedBy = cameBefore && chunks.length > 0 ? await replacementOfAll(store, chunks) : undefined;
    return {
      load: (keyed ? last?.load : (loadId ?? last?.load)) ?? loadId ?? '',
      accepted,
      rejected: sum(chunks, 'rejectedRows'),
      duplicates: sum(chunks, 'rows') - accepted,
      reasons: reasons.flat().slice(0, shownRejects).map(forSenders),
      visible_at: new Date((last?.loadedAt ?? Date.now()) + answerTrustMs).toISOString(),
      ...(replacedBy !== undefined && { replaced_by: replacedBy }),
    };
  }
}

/** Whether its chunk can be stored with those of other bodies: records of text, and none that a condition leaves out. */
function isBundled({ format, mapping }: ReceivedBody): boolean {
  const { text }: Format = formats[format];
  return text !== undefined && ![mapping, ...(mapping.events ?? [])].some(({ condition }) => condition);
}

/** Bytes under a key are others than the same bytes without it or under another; the key alone finds them. */
function identityOf({ sender, key, bytes }: ReceivedBody): Partial<InputIdentity> {
  if (key === undefined) return {};
  const name = JSON.stringify([sender, key]);
  return { key: name, salt: `key ${name} ${createHash('sha256').update(bytes).digest('hex')}` };
}
