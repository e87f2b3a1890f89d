import { retrying } from '../../clickhouse/retry.ts';
import { firstCut, type JudgedChunks, type OpenInput, type SendableChunk } from '../chunks/sendable-chunk.ts';
import { type Batch, settle } from '../delivery/batches.ts';
import { type DeliveredChunk, markLoaded, recordDaysChanged } from '../delivery/chunk-outcome.ts';
import { type ClaimedChunk, claimChunks } from '../delivery/claim-chunks.ts';
import { deliverChunk } from '../delivery/deliver-chunk.ts';
import { Sender, type SendOptions, type SentRows } from '../delivery/sender.ts';
import { dropStaged, heldBy } from '../delivery/staging.ts';
import { putInDoubt } from '../delivery/withdraw-chunks.ts';
import type { JudgeOptions } from '../event/judge.ts';
import { type FileReading, plainReading } from '../event/reading.ts';
import type { SheetDates } from '../event/values.ts';
import { type FormatName, formatOf } from '../formats/formats.ts';
import { type Input, sizeOf } from '../input/input.ts';
import { InputChanged, InputError } from '../input/input-error.ts';
import { looksAt } from '../input/one-version.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Load, type LoadCounts, noCounts } from '../ledger/load.ts';
import { LoadError, loadFailure, Stopped } from '../ledger/load-error.ts';
import { countOpenRejects, describeRejected, type RejectedRow } from '../rejects/rejected-rows.ts';
import { knownChunks } from './known-chunks.ts';
import { mendChunks } from './mend-chunks.ts';
import { describeMidnights, describeOddDays } from './odd-times.ts';
import { atMost, inParallel } from './parallel.ts';
import { reportTimezone } from './report-timezone.ts';

/** Chunks sent at a time: a third makes nothing faster, and takes its memory. */
export const senders = 2;

/** What tests make small, to have several chunks of a small file. */
export interface ChunkSize {
  /** What a chunk of text or Avro may have; absent: what is fastest. */
  readonly chunkBytes?: number | undefined;
}

export interface EventLoadOptions extends ChunkSize, SendOptions {
  readonly input: Input;
  /** Absent: by the name of the input. */
  readonly format?: FormatName;
  /** How columns become fields; absent: by their names. */
  readonly reading?: FileReading;
  /** IANA zone of times that name none; absent: UTC. */
  readonly timezone?: string;
  /** How numbers among times are read that are serial dates; absent: there are none. */
  readonly dates?: SheetDates;
  /** Amounts of more than six decimal places are rounded instead of rejected. */
  readonly roundMoney?: boolean;
  /** Also what was loaded before and read in another way; absent: refused, because it would count twice. */
  readonly again?: boolean;
  /** Of a dry run: what came before this input. What it has in common with that counts as loaded. */
  readonly judged?: JudgedChunks;
  readonly now: () => Date;
  /** Ends the load after the chunks in flight, and all waiting at once, also for a ClickHouse that does not answer. */
  readonly signal?: AbortSignal;
  /** Called after every step; the object changes as the load goes on. */
  readonly onProgress?: (counts: Readonly<LoadCounts>) => void;
  /** Called with the first rejected rows of each chunk, what a person is told of each, and the name of the input. */
  readonly onRejected?: (row: RejectedRow, text: string, file: string) => void;
  /** Called in a dry run with the first events of each chunk as a table. */
  readonly onSample?: (table: string) => void;
  /** A load that has been started already; it is finished here. Without it a new one is started. */
  readonly load?: Load;
  /** Called with the load that has sent something of an input which was replaced while it was read. */
  readonly onReplaced?: (load: string) => void;
}

export type ChunkPlace = Pick<SendableChunk, 'id' | 'head' | 'unit' | 'rows'>;

export const placeOf = ({ id, head, unit, rows }: SendableChunk): ChunkPlace => ({ id, head, unit, rows });

export interface LoadResult extends Readonly<LoadCounts> {
  /** Rejected rows of this file, also of earlier loads of it, that are neither replayed nor dismissed. */
  readonly openRejects: number;
  /** Absent for a dry run. */
  readonly loadId?: string;
  /** When ClickHouse had all of it, by `performance.now()`; absent: before it was looked at. */
  readonly storedAt?: number;
  /** How the ledger finds its chunks. */
  readonly places: readonly ChunkPlace[];
  /** What a dry run has judged, and holds back where it is told to; absent where it was stored. */
  readonly judged?: readonly DeliveredChunk[];
}

/**
 * Loads one file of events: every line is counted exactly once, however often and by whomever the same bytes
 * are loaded. Lines that are no events are kept as rejected rows; they do not stop the others from being loaded.
 * @throws {InputError} that names the file and what is wrong with it, {@link LoadError} when ClickHouse fails,
 * {@link Stopped} after a signal
 */
export async function loadEvents(options: EventLoadOptions): Promise<LoadResult> {
  const { signal } = options;
  const stopReading = new AbortController();
  // AbortSignal.any takes thirty times as long, and leaves something at a signal that lives as long as a service.
  const stop = () => stopReading.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  try {
    return await loadChunks(options, stopReading);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** @param stopReading ends the reading of chunks that will not be sent any more */
async function loadChunks(options: EventLoadOptions, stopReading: AbortController): Promise<LoadResult> {
  const { store, input, dedupe = false, rejectLimit, signal } = options;
  const { name: file } = input;
  const format = formatOf(input, options.format);
  const counts = options.load?.counts ?? noCounts();
  const ledger: Ledger = options;
  const parallel = dedupe ? 1 : senders;
  const readSignal = stopReading.signal;
  const readLedger = { ...ledger, signal: readSignal };
  const inSlot = atMost(parallel, readSignal);

  const reading = options.reading ?? plainReading(file);
  const opening = () =>
    format.open(input, {
      reading,
      chunkBytes: options.chunkBytes,
      onBytes: (bytes) => {
        counts.bytes += bytes;
        options.onProgress?.(counts);
      },
      signal: readSignal,
    });
  const unchanged = looksAt(input);
  const { load, opened, failure } = await beginLoad(opening, options, counts);

  /** To be mended, or what a dry run has judged. */
  const held: DeliveredChunk[] = [];
  const batches: Batch[] = [];
  // Batches that cannot be dropped in spite of retries expire after a day.
  const letGo = () => Promise.allSettled(batches.splice(0).map((batch) => settle(store, batch)));
  const places: ChunkPlace[] = [];
  /** Chunks that may have open rejected rows. */
  const ids: string[] = [];
  const sentIds: string[] = [];
  const stored: { readonly id: string; readonly firstLine: number }[] = [];
  const odd = { future: 0, early: 0, hasTimes: false };
  let storedAt: number | undefined;
  const finishChunk = async (sender: Sender, { chunk, claim, claimed }: ClaimedChunk): Promise<void> => {
    places.push(placeOf(chunk));
    if (claim.how === 'skip') {
      ids.push(chunk.id);
      counts.repeatedRows += claim.rows;
      storedAt = performance.now();
    } else {
      sentIds.push(chunk.id);
      const sent = await inSlot((onSent) =>
        deliverChunk({ ledger, sender, load, rejectLimit, onSent }, chunk, claim, claimed),
      );
      storedAt = performance.now();
      if (sent.isHeldBack || !load) held.push(deliveredOf(chunk, sent));
      else {
        const interrupted =
          sender.interruptions > claimed.interruptions || load.heartbeatLapsedSince(claimed.at);
        if (claim.how !== 'send' || interrupted) await recordDaysChanged(ledger, [chunk.id]);
        await markLoaded(ledger, load, deliveredOf(chunk, sent));
        if (sent.batch) batches.push(sent.batch);
      }
      counts.rows += sent.rows;
      counts.rejectedRows += sent.rejectedRows;
      counts.duplicateRows += sent.duplicates;
      counts.leftOutRows += sent.leftOut;
      odd.future += sent.future;
      odd.early += sent.early;
      odd.hasTimes ||= sent.hasTimes ?? false;
      if (sent.rejectedRows > 0) ids.push(chunk.id);
      if (sent.rows > 0) stored.push({ id: chunk.id, firstLine: chunk.firstLine });
      for (const row of sent.rejects) {
        options.onRejected?.(row, describeRejected(file, chunk.unit, row), file);
      }
      if (sent.sample) options.onSample?.(sent.sample);
    }
    chunk.release();
    counts.chunks++;
    options.onProgress?.(counts);
  };

  try {
    if (!opened || failure) throw failure;
    const judge = await judgeOptions(options, ledger);
    const sender = new Sender({ ...options, file, judge });
    const chunks = opened.chunks(async (head) => {
      const judged = options.judged?.get(head) ?? [];
      const known = await knownChunks(readLedger, head);
      // What comes in the place of others is cut as the files before it were, whatever was loaded once.
      return options.hold ? [...judged.toSorted(firstCut), ...known] : [...judged, ...known].sort(firstCut);
    });
    const more = { ...options, file, key: reading.key, isPiece: reading.channel !== undefined, unchanged };
    const claims = claimChunks(chunks, readLedger, load, sender, more);
    // One more than are sent: it waits with its claim, or has been sent and is looked after.
    await inParallel(claims, parallel + 1, (claim) => finishChunk(sender, claim), stopReading, signal);
    if (signal?.aborted) throw new Stopped('stopped');
    if (load && held.length > 0) {
      // Not as loaded: who comes after a loader that was killed here sees that something is left to do.
      await load.fail(
        new Error(
          'some of it was in doubt, and waits for other loads, to be mended: if its command has ended, run it again',
        ),
      );
      await mendChunks(ledger, load, held, options);
      storedAt = performance.now();
    }
    // At the same time: the load that drops a batch for all its members does not end later than they do.
    const [finished] = await Promise.allSettled([load?.finish(), letGo()]);
    if (finished.status === 'rejected') throw finished.reason;
    const openRejects = load && ids.length > 0 ? await countOpenRejects(ledger, ids) : counts.rejectedRows;
    const sentFirst = stored.sort((a, b) => a.firstLine - b.firstLine).map(({ id }) => id);
    const mayBeDays = sentFirst.length > 0 && !odd.hasTimes;
    const times = { ...judge, file, ...(load && { chunks: sentFirst }) };
    const midnights = mayBeDays ? await describeMidnights(ledger, times) : undefined;
    for (const text of [describeOddDays(file, odd), midnights]) if (text) reading.warn(text);
    return {
      ...counts,
      openRejects,
      places,
      ...(storedAt !== undefined && { storedAt }),
      ...(load && { loadId: load.id }),
      ...(!load && { judged: held }),
    };
  } catch (error) {
    const cause = loadFailure(error, file, signal);
    const isReplaced = cause instanceof InputChanged && input.renew && options.onReplaced;
    const hasChanged = () =>
      unchanged().then(
        () => false,
        () => true,
      );
    // Run again, the file as it is now counts beside what was stored of it. A packed one that was overwritten seems damaged.
    const mayBeOverwritten = load && !isReplaced && sentIds.length > 0 && cause instanceof InputError;
    const failure = mayBeOverwritten && (await hasChanged()) ? overwritten(cause, load.id) : cause;
    const takenBack = isReplaced && sentIds.length > 0;
    // Before its turn ends: a load that waits behind it is not to rely on what is taken back.
    const forgotten = load && takenBack ? putInDoubt(ledger, load, sentIds) : Promise.resolve();
    await forgotten.finally(() => load?.fail(failure instanceof LoadError ? error : failure));
    if (load && takenBack) options.onReplaced?.(load.id);
    throw failure;
  } finally {
    await letGo();
    // What cannot be dropped expires after a day.
    if (load && held.length > 0)
      await dropStaged(
        store,
        held.map(({ chunk }) => heldBy(chunk.id, load.id)),
      ).catch(() => {});
    await opened?.close();
  }
}

/**
 * Opens an input and begins its load, beside which none runs of what begins alike. One that cannot be opened is a load as
 * well, which has failed. Others may wait for their first bytes for ever, and are seen to run meanwhile; those that have a
 * size take the turn of their beginning at once.
 * @returns no load for a dry run
 */
async function beginLoad(
  opening: () => Promise<OpenInput>,
  options: EventLoadOptions,
  counts: LoadCounts,
): Promise<{ load: Load | undefined; opened: OpenInput | undefined; failure: unknown }> {
  const { store, input, dedupe = false, dryRun, now, signal } = options;
  const { name: file } = input;
  const startedAt = now();
  const begin = async (lock = '') => {
    if (dryRun || options.load) return dryRun ? undefined : options.load;
    try {
      return await Load.begin(store, { kind: 'events', file, dedupe, lock, counts }, startedAt, options);
    } catch (error) {
      const failure = loadFailure(error, file, signal);
      throw failure instanceof Stopped ? failure : error;
    }
  };
  let load = sizeOf(input) === undefined ? await begin() : undefined;
  let opened: OpenInput | undefined;
  let failure: unknown;
  try {
    opened = await opening();
    if (load && !options.load && opened.begins) await load.takeLock(opened.begins, options);
  } catch (error) {
    failure = error;
  }
  try {
    load ??= await begin(opened?.begins);
  } catch (error) {
    await opened?.close();
    throw error;
  }
  return { load, opened, failure };
}

function overwritten(cause: InputError, load: string): InputError {
  const Kind = cause instanceof InputChanged ? InputChanged : InputError;
  const reason = cause.message.replace(/\.?$/, '.');
  return new Kind(
    `${reason} If it was overwritten meanwhile, adtally unload ${load} takes back what it had. Run the same command again.`,
    { cause },
  );
}

function deliveredOf(
  { id, head, content, firstLine, firstByte, bytes, rows: records }: SendableChunk,
  { rows, rejectedRows, duplicates, leftOut }: SentRows,
): DeliveredChunk {
  const chunk = { id, head, content, firstLine, firstByte, bytes, rows: records };
  return { chunk, rows, rejectedRows, duplicates, leftOut };
}

async function judgeOptions(
  { dedupe = false, roundMoney = false, timezone = 'UTC', dates }: EventLoadOptions,
  ledger: Ledger,
): Promise<JudgeOptions> {
  return {
    reportTimezone: await retrying(() => reportTimezone(ledger.store), ledger),
    timezone,
    dates,
    roundMoney,
    requireEventId: dedupe,
  };
}
