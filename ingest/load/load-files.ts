import { stat } from 'node:fs/promises';
import type { FileReading } from '../event/reading.ts';
import { Stopped } from '../ledger/load-error.ts';
import { together } from '../ledger/together.ts';
import { type EventLoadOptions, type LoadResult, loadEvents } from './load-events.ts';
import { inParallel } from './parallel.ts';

export interface FileLoadOptions extends Omit<EventLoadOptions, 'file' | 'reading' | 'load' | 'inTurn'> {
  readonly readingOf: (file: string) => FileReading;
}

/** A file of at most this size is loaded beside others. */
const smallFileBytes = 1 << 20;
/** So many share their small statements and take no more memory than a large file. */
const smallFilesAtOnce = 64;

/**
 * Loads files one after another and stops at the first that fails. Small files that follow each other are loaded many
 * at a time, each as a load of its own: what a load costs besides its events is a dozen small statements, which they
 * make together. Not with options that go by the order of all events.
 * @returns the result of each file
 */
export async function loadFiles(
  files: readonly string[],
  { readingOf, ...options }: FileLoadOptions,
): Promise<LoadResult[]> {
  const { store, parallel = 2, dedupe, dryRun, rejectLimit, signal } = options;
  const results: LoadResult[] = [];
  const inTurn = turns(parallel);
  let quietUntil = 0;
  const load = async (n: number, atOnce: number): Promise<void> => {
    const file = files[n] ?? '';
    results[n] = await loadEvents({
      ...options,
      file,
      reading: readingOf(file),
      ...(atOnce > 1 && { inTurn: (send) => inTurn(store, send) }),
      onRetry: (error) => {
        // All of them meet the same failure.
        if (performance.now() < quietUntil) return;
        quietUntil = performance.now() + 1_000;
        options.onRetry?.(error);
      },
    });
  };
  for (let next = 0; next < files.length; ) {
    const small = dedupe || dryRun || rejectLimit ? 0 : await smallFiles(files, next);
    const end = next + Math.max(1, small);
    const some = async function* () {
      for (; next < end; next++) yield next;
    };
    const atOnce = Math.min(small, smallFilesAtOnce);
    await inParallel(some(), Math.max(1, atOnce), (n) => load(n, atOnce), new AbortController(), signal);
    if (signal?.aborted) throw new Stopped('stopped');
  }
  return results;
}

/** How many small files follow each other from here on. */
async function smallFiles(files: readonly string[], from: number): Promise<number> {
  for (let n = from; n < files.length; n++) {
    const found = files[n] === '-' ? undefined : await stat(files[n] ?? '').catch(() => undefined);
    if (!found?.isFile() || found.size > smallFileBytes) return n - from;
  }
  return files.length - from;
}

type Send = () => Promise<void>;

/**
 * Sends chunks of several loads, a few at a time. Those that have been sent together go on together, so that what their
 * loads do next can be done in one statement as well.
 */
function turns(parallel: number): (store: EventLoadOptions['store'], send: Send) => Promise<void> {
  const send = together<Send, PromiseSettledResult<void>>(async (_store, sends) => {
    const outcomes: PromiseSettledResult<void>[] = [];
    const left = sends.entries();
    const sendRest = async () => {
      for (const [n, send] of left) {
        const [outcome] = await Promise.allSettled([send()]);
        outcomes[n] = outcome;
      }
    };
    await Promise.all(Array.from({ length: parallel }, sendRest));
    return outcomes;
  });
  return async (store, own) => {
    const outcome = await send(store, own);
    if (outcome.status === 'rejected') throw outcome.reason;
  };
}
