import { retrying } from '../../clickhouse/retry.ts';
import type { KnownChunk } from '../chunks/sendable-chunk.ts';
import { smallInputBytes } from '../chunks/text-chunks.ts';
import { MappingError } from '../event/mapping.ts';
import type { FileReading } from '../event/reading.ts';
import { compressionNamed } from '../input/compression.ts';
import { type Input, sizeOf } from '../input/input.ts';
import { inOneVersion } from '../input/one-version.ts';
import { together } from '../ledger/batch-calls.ts';
import { isOfInput, loadFailure, Stopped } from '../ledger/load-error.ts';
import { unsettledFiles } from '../ledger/load-records.ts';
import { alreadyLoaded, type KnownFile } from './already-loaded.ts';
import { type EventLoadOptions, type LoadResult, loadEvents, senders } from './load-events.ts';
import { inParallel } from './parallel.ts';

export interface FileLoadOptions
  extends Omit<EventLoadOptions, 'input' | 'reading' | 'load' | 'loads' | 'inTurn' | 'judged'> {
  readonly readingOf: (file: string) => FileReading;
  /** Called for each input when the ledger says of all of it that it is loaded, also where it was so before. */
  readonly onLoaded?: (input: Input, result: LoadResult) => Promise<void>;
  /** Called for each input that cannot be loaded; the others are. Absent: the first such failure is thrown. */
  readonly onFailed?: (input: Input, error: Error) => void;
  /** Takes back what a load has sent of an input that was replaced meanwhile. */
  readonly takeBack?: (load: string) => Promise<void>;
}

/** A packed file takes about so many times its size in memory. */
const unpackedTimes = 12;
/** So many share their small statements and take no more memory than a large file. */
const smallFilesAtOnce = 256;
/** So many are looked at for what is loaded of them, before those that are new are loaded. */
const lookedAtTogether = 10_000;
/** So many of them are read at a time: a thousand share a statement, and the next thousand are read meanwhile. */
const mostReadAtOnce = 2_000;
/** Fewer large ones: each is in memory. With what is on its way a loader takes 280 MB. */
const bytesAtOnce = 64 << 20;

/**
 * Loads files one after another and stops at the first that fails. A file without anything new makes no load, unless its last
 * one has failed or was killed. Small files that follow each other are loaded many at a time, each as a load of its own: what a
 * load costs besides its events is a dozen small statements, which they make together. Those that begin alike, such as one file
 * at several ages, follow each other, so that each has what the one before lacks. Not with options that go by the order of all
 * events.
 * @returns the result of each file
 */
export async function loadFiles(
  inputs: readonly Input[],
  { readingOf, ...options }: FileLoadOptions,
): Promise<LoadResult[]> {
  const { store, dedupe, dryRun, rejectLimit, signal } = options;
  const results: LoadResult[] = [];
  const inTurn = turns(senders);
  const sizes: (number | undefined)[] = [];
  let quietUntil = 0;
  let unsettled: Promise<ReadonlySet<string>> | undefined;
  const optionsOf = (input: Input): EventLoadOptions => ({
    ...options,
    input,
    reading: readingOf(input.name),
    onRetry: (error) => {
      // All of them meet the same failure.
      if (performance.now() < quietUntil) return;
      quietUntil = performance.now() + 1_000;
      options.onRetry?.(error);
    },
  });
  const judged = new Map<string, KnownChunk[]>();
  const settle = async (n: number, input: Input, result: LoadResult): Promise<void> => {
    for (const { chunk, rows } of result.judged ?? [])
      judged.set(chunk.head, [...(judged.get(chunk.head) ?? []), { ...chunk, loadedRows: rows }]);
    results[n] = result;
    await options.onLoaded?.(input, result);
  };
  const each = async (
    runs: Iterable<readonly number[]>,
    atOnce: number,
    work: (n: number, input: Input) => Promise<void>,
  ) => {
    const all = async function* () {
      yield* runs;
    };
    const { onFailed } = options;
    const stop = new AbortController();
    const one = async (run: readonly number[]) => {
      for (const n of run) {
        if (stop.signal.aborted || signal?.aborted) return;
        const input = inputs[n] as Input;
        try {
          await work(n, input);
        } catch (error) {
          if (!onFailed || !(isOfInput(error) || error instanceof MappingError)) throw error;
          onFailed(input, error);
        }
      }
    };
    await inParallel(all(), atOnce, one, stop, signal);
    if (signal?.aborted) throw new Stopped('stopped');
  };
  for (let next = 0; next < inputs.length; ) {
    if (next === sizes.length) {
      sizes.push(...inputs.slice(next, next + lookedAtTogether).map(bytesOf));
    }
    const from = next;
    while ((sizes[next] ?? Number.POSITIVE_INFINITY) <= smallInputBytes) next++;
    // A large one by itself.
    if (next === from) next++;
    const numbers = Array.from({ length: next - from }, (_, n) => from + n);
    const singly = (left: readonly number[]) => left.map((n) => [n]);
    const known = new Map<number, KnownFile>();
    const largest = Math.max(...sizes.slice(from, next).map((size = 0) => size), 1);
    const fitting = Math.ceil(bytesAtOnce / largest);
    // What has no size cannot be read twice.
    if (!dryRun && sizes[from] !== undefined) {
      await each(singly(numbers), Math.min(fitting, mostReadAtOnce), async (n, input) => {
        const own = optionsOf(input);
        const found = await alreadyLoaded(own);
        const look = () => unsettledFiles(store, options.now());
        if (found.loaded)
          unsettled ??= retrying(look, own).catch((error) => {
            throw loadFailure(error, input.name, signal);
          });
        // A load of it that was killed once all was stored is no failure any more when another has found that.
        const loaded = (await unsettled)?.has(input.name) ? undefined : found.loaded;
        known.set(n, { ...found, loaded });
        if (loaded) await settle(n, input, loaded);
      });
    }
    const left = numbers.filter((n) => !known.get(n)?.loaded);
    const alone = dedupe || dryRun || rejectLimit || next - from === 1;
    const runs = alone ? singly(left) : alike(left, (n) => known.get(n)?.begins || n);
    const atOnce = alone ? 1 : Math.max(1, Math.min(left.length, smallFilesAtOnce, fitting));
    let loads = 0;
    const shared = { inTurn: (send: Send) => inTurn(store, send), loads: () => loads };
    await each(runs, atOnce, async (n, input) => {
      const load = (own: EventLoadOptions) => {
        loads++;
        return loadEvents(own).finally(() => loads--);
      };
      const own = { ...optionsOf(input), ...(atOnce > 1 && shared), ...(dryRun && { judged }) };
      await settle(n, input, await loadWhole(own, load, options.takeBack));
    });
  }
  return results.filter((result) => result !== undefined);
}

/** About what it takes to hold an input; undefined for what can be read only once. */
function bytesOf(input: Input): number | undefined {
  const size = sizeOf(input);
  return size === undefined || compressionNamed(input) === 'none' ? size : size * unpackedTimes;
}

/** Numbers in runs that have the same key; each run, and the first of all runs, in their order. */
function alike(numbers: readonly number[], keyOf: (n: number) => string | number): number[][] {
  const runs = new Map<string | number, number[]>();
  for (const n of numbers) {
    const run = runs.get(keyOf(n));
    if (run) run.push(n);
    else runs.set(keyOf(n), [n]);
  }
  return [...runs.values()];
}

/**
 * What was sent of an input that was replaced meanwhile is taken back: it would count beside the new version. What was
 * rejected of it no longer counts towards the limit; where there is one, no other input is loaded at the same time.
 */
async function loadWhole(
  options: EventLoadOptions,
  load: (options: EventLoadOptions) => Promise<LoadResult>,
  takeBack: FileLoadOptions['takeBack'],
): Promise<LoadResult> {
  const sentBy: string[] = [];
  const onReplaced = (load: string) => void sentBy.push(load);
  const forgetRejected = options.rejectLimit?.mark();
  return inOneVersion(
    options.input,
    () => load({ ...options, onReplaced }),
    async (error) => {
      const sender = sentBy.pop();
      if (sender !== undefined && !takeBack) throw error;
      if (sender !== undefined) await takeBack?.(sender);
      forgetRejected?.();
    },
  );
}

type Send = () => Promise<void>;

/**
 * Sends chunks of several loads, a few at a time. Those that have been sent together go on together, so that what their
 * loads do next can be done in one statement as well.
 */
function turns(parallel: number): (store: EventLoadOptions['store'], send: Send) => Promise<void> {
  return together<Send, void>(async (_store, sends) => {
    const outcomes: Promise<void>[] = [];
    const left = sends.entries();
    const sendRest = async () => {
      for (const [n, send] of left) {
        outcomes[n] = send();
        await Promise.allSettled([outcomes[n]]);
      }
    };
    await Promise.all(Array.from({ length: parallel }, sendRest));
    return outcomes;
  });
}
