import type { Store } from '../../clickhouse/client.ts';
import { chunksOf } from '../chunks/read-chunks.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { type Format, formatOf } from '../input/file-format.ts';
import type { RejectLimit } from '../rejects/reject-limit.ts';
import { forgetRejected, keepRejected, type RejectedRow } from '../rejects/rejected-rows.ts';
import type { SendableClaim } from './chunk-claims.ts';
import { markLoaded } from './chunk-outcome.ts';
import { type ClaimedChunk, claimChunks } from './claim-chunks.ts';
import { deliverChunk } from './deliver-chunk.ts';
import { beginChunk, knownChunks } from './known-chunks.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { Load, type LoadCounts, noCounts } from './load.ts';
import { loadFailure, Stopped } from './load-error.ts';
import type { LoadTimings } from './load-timings.ts';
import { inParallel } from './parallel.ts';
import { repairRollupsOf, type UnsettledChunk } from './repair-rollups.ts';
import { Sender } from './sender.ts';

export interface EventLoadOptions {
  readonly store: Store;
  /** Path, or `-` for standard input. */
  readonly file: string;
  readonly format?: Format['name'];
  readonly chunkBytes: number;
  /** Chunks sent at a time. */
  readonly parallel?: number;
  readonly ignoreUnknown?: boolean;
  readonly dedupe?: boolean;
  /** Everything is checked and nothing stored. */
  readonly dryRun?: boolean;
  readonly rejectLimit?: RejectLimit;
  readonly now: () => Date;
  /** Ends the load after the chunks in flight, and all waiting at once, also for a ClickHouse that does not answer. */
  readonly signal?: AbortSignal;
  /** Called after every step; the object changes as the load goes on. */
  readonly onProgress?: (counts: Readonly<LoadCounts>) => void;
  /** Called with the first rejected rows of each chunk. */
  readonly onRejected?: (row: RejectedRow) => void;
  /** A load that has been started already; it is finished here. Without it a new one is started. */
  readonly load?: Load;
  /** Called when another load has to end first. */
  readonly onWait?: (other: string) => void;
  /** Absent: those of production. */
  readonly timings?: LoadTimings;
  /** Called when ClickHouse does not answer and is tried again. */
  readonly onRetry?: (error: Error) => void;
}

export interface LoadResult extends Readonly<LoadCounts> {
  /** Absent for a dry run. */
  readonly loadId?: string;
}

/** Rejected rows of a chunk that are passed to `onRejected`; all of them are kept. */
const maxReported = 10;

/**
 * Loads one file of events: every line is counted exactly once, however often and by whomever the same bytes
 * are loaded. Lines that are no events are kept as rejected rows; they do not stop the others from being loaded.
 * @throws {InputError} that names the file and what is wrong with it, {@link LoadError} when ClickHouse fails,
 * {@link Stopped} after a signal
 */
export async function loadEvents(options: EventLoadOptions): Promise<LoadResult> {
  const { store, file, dedupe = false, rejectLimit, now, signal } = options;
  const fileFormat = formatOf(file, options.format);
  const load = await beginLoad(options);
  const counts = load?.counts ?? noCounts();
  const ledger = openLedger(store, options);
  const sender = new Sender(options);
  const parallel = dedupe ? 1 : (options.parallel ?? 2);
  // Ends the reading of chunks that will not be sent any more.
  const stopReading = new AbortController();
  const readSignal = signal ? AbortSignal.any([signal, stopReading.signal]) : stopReading.signal;
  const readLedger = openLedger(store, { ...options, signal: readSignal });
  const chunks = chunksOf({
    file,
    parallel,
    fileFormat,
    chunkBytes: options.chunkBytes,
    ignoreUnknown: options.ignoreUnknown ?? false,
    knownChunks: (firstLineHash) => knownChunks(readLedger, firstLineHash),
    beginChunk: async (firstLineHash) => (load ? beginChunk(readLedger, load, firstLineHash) : []),
    onBytes: (bytes) => {
      counts.bytes += bytes;
      options.onProgress?.(counts);
    },
    signal: readSignal,
  });

  const unsettled: UnsettledChunk[] = [];
  const finishChunk = async ({ chunk, claim, claimed }: ClaimedChunk): Promise<void> => {
    if (claim.how === 'skip') counts.repeatedRows += claim.rows;
    else {
      const delivery = { store, ledger, sender, load, dedupe, rejectLimit };
      const sent = await deliverChunk(delivery, chunk, claim, claimed);
      if (load) {
        const doubted = await recordDelivery(ledger, load, file, chunk, claim, sent);
        if (doubted) unsettled.push(doubted);
      }
      counts.rows += sent.rows;
      counts.rejectedRows += sent.rejectedRows;
      counts.duplicateRows += sent.duplicates;
      for await (const row of sent.readRejected(maxReported)) options.onRejected?.(row);
    }
    counts.chunks++;
    options.onProgress?.(counts);
  };

  try {
    const claims = claimChunks(chunks, readLedger, load, sender);
    await inParallel(claims, parallel, finishChunk, stopReading, signal);
    if (signal?.aborted) throw new Stopped('stopped');
    await load?.finish();
    if (load && unsettled.length > 0) await repairRollupsOf(ledger, load, unsettled, now, options);
    return { ...counts, ...(load && { loadId: load.id }) };
  } catch (error) {
    const failure = loadFailure(error, file, signal);
    await load?.fail(failure instanceof Stopped ? failure : error);
    throw failure;
  }
}

/** The load of the options, or a new one; none for a dry run. */
async function beginLoad(options: EventLoadOptions): Promise<Load | undefined> {
  const { store, file, dedupe = false, now, signal } = options;
  if (options.dryRun || options.load) return options.dryRun ? undefined : options.load;
  try {
    return await Load.begin(store, { kind: 'events', file, dedupe }, now(), options);
  } catch (error) {
    const failure = loadFailure(error, file, signal);
    throw failure instanceof Stopped ? failure : error;
  }
}

/** Keeps the rejected rows of a chunk and marks it as loaded, unless its rollups have to be looked at first. */
async function recordDelivery(
  ledger: Ledger,
  load: Load,
  file: string,
  { id, firstLineHash, bytes, rows: lines }: SendableChunk,
  claim: SendableClaim,
  { rows, rejectedRows, readRejected, rollupsInDoubt }: Awaited<ReturnType<typeof deliverChunk>>,
): Promise<UnsettledChunk | undefined> {
  // An earlier attempt may have rejected other lines.
  if (claim.how !== 'send') await forgetRejected(ledger.store, id);
  if (rejectedRows > 0) await keepRejected(ledger.store, { loadId: load.id, file, chunk: id }, readRejected);
  const chunk = { id, firstLineHash, bytes, rows: lines };
  if (rollupsInDoubt) return { chunk, rows, rejectedRows };
  await markLoaded(ledger, load, chunk, rows, rejectedRows);
  return undefined;
}
