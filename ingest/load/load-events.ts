import { ClickHouseError } from '@clickhouse/client';
import type { Store } from '../../clickhouse/client.ts';
import { chunksOf } from '../chunks/read-chunks.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { type Format, formatOf } from '../input/file-format.ts';
import { InputError } from '../input/input-error.ts';
import type { RejectLimit } from '../rejects/reject-limit.ts';
import { forgetRejected, keepRejected, type RejectedRow } from '../rejects/rejected-rows.ts';
import { type Claim, Ledger } from './ledger.ts';
import { Load, type LoadCounts, type LoadOptions, noCounts } from './load.ts';
import type { LoadTimings } from './load-timings.ts';
import { inParallel } from './parallel.ts';
import { repairRollupsOf, type UnsettledChunk, withdrawChunk } from './repair-rollups.ts';
import { Sender, type SentRows } from './sender.ts';

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
  /** Ends the load after the chunks in flight, and its waiting for anything at once. */
  readonly signal?: AbortSignal;
  /** Told after every step; the object changes as the load goes on. */
  readonly onProgress?: (counts: Readonly<LoadCounts>) => void;
  /** Told of the first rejected rows of each chunk. */
  readonly onRejected?: (row: RejectedRow) => void;
  /** Has its turn already and ends here; absent: one is begun. */
  readonly load?: Load;
  /** Called when another load has to end first. */
  readonly onWait?: (other: string) => void;
  /** Absent: those of production. */
  readonly timings?: LoadTimings;
  /** Told when the store does not answer and is tried again. */
  readonly onRetry?: (error: Error) => void;
}

export interface LoadResult extends Readonly<LoadCounts> {
  /** Absent for a dry run. */
  readonly loadId?: string;
}

/** Rejected rows of a chunk that are told; all of them are kept. */
const mostTold = 10;

/** The load was asked to stop; what is loaded stays loaded. */
export class Stopped extends Error {}

/**
 * Loads one file of events: every line is counted exactly once, however often and by whomever the same bytes
 * are loaded. Lines that are no events are kept as rejected rows and do not hold up the others.
 * @throws {InputError} that names the file and what is wrong with it, {@link Stopped} after a signal
 */
export async function loadEvents(options: EventLoadOptions): Promise<LoadResult> {
  const { store, file, dedupe = false, now, signal } = options;
  const fileFormat = formatOf(file, options.format);
  const load = options.dryRun
    ? undefined
    : (options.load ??
      (await Load.begin(store, { kind: 'events', file, dedupe }, now(), options).catch((error: unknown) => {
        throw stopped(error, signal);
      })));
  const counts = load?.counts ?? noCounts();
  // Ends the making ready of a chunk that is not sent any more.
  const stopReading = new AbortController();
  const ended = signal ? AbortSignal.any([signal, stopReading.signal]) : stopReading.signal;
  const ledger = new Ledger(store, { ...options, signal: ended });
  const sender = new Sender(options);
  const parallel = dedupe ? 1 : (options.parallel ?? 2);
  const chunks = chunksOf({
    file,
    parallel,
    fileFormat,
    chunkBytes: options.chunkBytes,
    ignoreUnknown: options.ignoreUnknown ?? false,
    knownChunks: (firstLineHash) => ledger.knownChunks(firstLineHash),
    beginChunk: async (firstLineHash) => (load ? ledger.beginChunk(load, firstLineHash) : []),
    onBytes: (bytes) => {
      counts.bytes += bytes;
      options.onProgress?.(counts);
    },
    signal: ended,
  });

  const unsettled: UnsettledChunk[] = [];
  /** @returns `rollupsInDoubt` when its rollups may hold too much or too little of it */
  const sendChunk = async (
    { chunk, interruptions, claimedAt }: ClaimedChunk,
    claim: Extract<Claim, { loaded: false }>,
  ): Promise<SentRows & { rollupsInDoubt: boolean }> => {
    let { dedup } = claim;
    let before = interruptions;
    let from = claimedAt;
    for (let attempt = 0, since = claim.loadTime; ; attempt++, since = await ledger.now()) {
      const underNewToken = dedup === 'expired';
      if (underNewToken && load) {
        await ledger.markWithdrawn(load, chunk);
        await withdrawChunk(store, chunk.id);
        dedup = 'reliable';
      }
      const named = underNewToken ? { ...chunk, token: `${chunk.id} ${load?.id} ${attempt}` } : chunk;
      const sent = await sender.send(named, claim.loadTime);
      if (load && (sender.interruptions > before || load.heartbeatLapsedSince(from))) {
        const found = await ledger.dedupStateOf(since);
        if (found !== 'reliable') dedup = found;
      }
      const lines = chunk.rows - sent.rejectedRows;
      const trusted = dedup === 'reliable' && (underNewToken || !claim.sentBefore);
      // What --dedupe leaves out is counted by what is there, and does not tell what is missing.
      const whole =
        trusted ||
        (dedup !== 'expired' && (dedupe ? dedup === 'reliable' : await ledger.isWhole(chunk, lines)));
      if (whole) return { ...sent, rollupsInDoubt: underNewToken || dedup === 'may-lose-rows' };
      options.rejectLimit?.takeBack(chunk.rows, sent.rejectedRows);
      dedup = 'expired';
      before = sender.interruptions;
      from = performance.now();
    }
  };
  const finishChunk = async (claimed: ClaimedChunk): Promise<void> => {
    const { chunk, claim } = claimed;
    if (claim.loaded) counts.repeatedRows += claim.rows;
    else {
      const sent = await sendChunk(claimed, claim);
      const { rows, rejectedRows, duplicates, rollupsInDoubt } = sent;
      if (load) {
        if (claim.sentBefore) await forgetRejected(store, chunk.id);
        const origin = { loadId: load.id, file, chunk: chunk.id };
        if (rejectedRows > 0) await keepRejected(store, origin, sent.readRejected);
        const { id, firstLineHash, bytes } = chunk;
        const identity = { id, firstLineHash, bytes, rows: chunk.rows };
        if (rollupsInDoubt) unsettled.push({ chunk: identity, rows, rejectedRows });
        else await ledger.markLoaded(load, chunk, rows, rejectedRows);
      }
      counts.rows += rows;
      counts.rejectedRows += rejectedRows;
      counts.duplicateRows += duplicates;
      for await (const row of sent.readRejected(mostTold)) options.onRejected?.(row);
    }
    counts.chunks++;
    options.onProgress?.(counts);
  };

  try {
    await inParallel(
      claimed(chunks, ledger, load, sender, { ...options, signal: ended }),
      parallel,
      finishChunk,
      stopReading,
      signal,
    );
    if (signal?.aborted) throw new Stopped('stopped');
    await load?.finish();
    if (load && unsettled.length > 0) {
      await repairRollupsOf(store, ledger, load, unsettled, now, options);
    }
    return { ...counts, ...(load && { loadId: load.id }) };
  } catch (cause) {
    const error = stopped(cause, signal);
    await load?.fail(error);
    const lost = error instanceof Error && ('syscall' in error || /socket hang up/.test(error.message));
    if (!(error instanceof ClickHouseError || lost)) throw error;
    throw new InputError(
      `${file}: ClickHouse cannot go on: ${error.message.split('\n')[0]} What is loaded stays loaded; the same command goes on where this one stopped`,
      { cause: error },
    );
  }
}

/** What a failure that comes of the signal is to the caller; any other is itself. */
function stopped(error: unknown, signal: AbortSignal | undefined): unknown {
  const aborted = error instanceof Error && [error, error.cause].some(isAbort);
  return signal?.aborted && aborted ? new Stopped('stopped', { cause: error }) : error;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

interface ClaimedChunk {
  readonly chunk: SendableChunk;
  readonly claim: Claim;
  /** Of the sender, when the chunk was claimed: the server may be restarted before it is sent. */
  readonly interruptions: number;
  /** By `performance.now()`: before it is sent, others may take the load for dead. */
  readonly claimedAt: number;
}

/**
 * Claims chunks in the order of the file: none is sent before the boundaries of those before it are in the
 * ledger, so that whoever goes on after a crash cuts the file at the same places.
 */
async function* claimed(
  chunks: AsyncGenerator<SendableChunk>,
  ledger: Ledger,
  load: Load | undefined,
  sender: Sender,
  options: LoadOptions,
): AsyncGenerator<ClaimedChunk> {
  const seen = new Set<string>();
  for await (const chunk of chunks) {
    await load?.requeueIfLapsed(options);
    const { interruptions } = sender;
    const claimedAt = performance.now();
    // The same lines again in one file are the same events.
    const loadedRows = seen.has(chunk.id) ? chunk.rows : load && chunk.known?.loadedRows;
    const claim: Claim =
      loadedRows !== undefined
        ? { loaded: true, rows: loadedRows }
        : load
          ? await ledger.claim(load, chunk)
          : { loaded: false, loadTime: '1970-01-01 00:00:00', dedup: 'reliable', sentBefore: false };
    seen.add(chunk.id);
    yield { chunk, claim, interruptions, claimedAt };
  }
}
