import type { Store } from '../../clickhouse/client.ts';
import { requireMigrated } from '../../clickhouse/migrate/migrate.ts';
import { expandFiles } from '../../ingest/input/expand-files.ts';
import { type Format, formatOf } from '../../ingest/input/file-format.ts';
import { unconfirmedDays } from '../../ingest/lists/confirmations.ts';
import { type LookupList, loadLookupList, lookupLists } from '../../ingest/lists/lookup-lists.ts';
import { noCounts } from '../../ingest/load/load.ts';
import { loadEvents, Stopped } from '../../ingest/load/load-events.ts';
import { requireLoad } from '../../ingest/load/load-history.ts';
import { describeRejected } from '../../ingest/load/sender.ts';
import { RejectLimit } from '../../ingest/rejects/reject-limit.ts';
import { replay } from '../../ingest/rejects/replay.ts';
import { eventProgress } from './progress.ts';

/** Loaded, but some rows were rejected. */
const exitRejected = 4;

export interface EventFlags {
  readonly chunkBytes: number;
  readonly parallel: number;
  readonly format?: Format['name'];
  readonly maxRejects?: { readonly rows?: number; readonly percent?: number };
  readonly ignoreUnknown?: boolean;
  readonly dedupe?: boolean;
  readonly dryRun?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

/** Rejected rows that are printed; all of them are kept. */
const shownRejects = 10;

const number = (value: number) => value.toLocaleString('en');
const say = (text: string): void => void process.stderr.write(`${text}\n`);

/**
 * `ingest events`: one file after the other; the first that fails ends the run. Returns the exit code.
 * A signal ends it after the chunks in flight; a second one at once.
 */
export async function ingestEvents(
  store: Store,
  args: readonly string[],
  flags: EventFlags,
): Promise<number> {
  await requireMigrated(store);
  const files = await expandFiles(args);
  // A name that does not tell the format stops the run before its first file, not in the middle.
  for (const file of files) formatOf(file, flags.format);
  const progress = await eventProgress(files, flags.quiet ?? false);
  const stop = stopOnSignal();
  const rejectLimit = flags.maxRejects && new RejectLimit(flags.maxRejects);
  const startedAt = performance.now();
  const loads: string[] = [];
  const total = noCounts();
  let shown = 0;
  try {
    for (const file of files) {
      const result = await loadEvents({
        ...flags,
        store,
        file,
        ...(rejectLimit && { rejectLimit }),
        now: () => new Date(),
        signal: stop.signal,
        onProgress: progress.onProgress,
        onRejected: (row) => {
          if (shown++ < shownRejects) progress.say(`rejected: ${describeRejected(file, row)}`);
        },
        onWait: (other) => progress.say(`waiting for load ${other}`),
        onRetry: (error) => progress.say(`${error.message}: trying again for two minutes`),
      });
      if (result.loadId) loads.push(result.loadId);
      for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += result[name];
    }
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    throw new Error('stopped. What is loaded stays loaded; the same command goes on where this one stopped', {
      cause: error,
    });
  } finally {
    stop.release();
    progress.stop();
  }
  const seconds = Math.round(performance.now() - startedAt) / 1000;
  report(total, { files: files.length, seconds, loads }, flags);
  return total.rejectedRows > 0 ? exitRejected : 0;
}

function report(
  total: ReturnType<typeof noCounts>,
  run: { files: number; seconds: number; loads: string[] },
  flags: EventFlags,
): void {
  const { rows, repeatedRows, rejectedRows, duplicateRows, bytes } = total;
  if (flags.json) {
    process.stdout.write(
      `${JSON.stringify({ loads: run.loads, files: run.files, rows, repeated_rows: repeatedRows, rejected_rows: rejectedRows, duplicate_rows: duplicateRows, bytes, seconds: run.seconds })}\n`,
    );
  }
  const files = run.files === 1 ? '1 file' : `${number(run.files)} files`;
  if (rows + rejectedRows + duplicateRows === 0 && repeatedRows > 0) {
    say(`nothing to do: all ${number(repeatedRows)} events of ${files} were already loaded`);
    return;
  }
  const rate = number(Math.round(rows / Math.max(0.001, run.seconds)));
  const parts = [
    `${number(rows)} events ${flags.dryRun ? 'can be loaded' : 'loaded'} from ${files} in ${run.seconds} s (${rate}/s)`,
    ...(repeatedRows ? [`${number(repeatedRows)} were already loaded`] : []),
    ...(duplicateRows ? [`${number(duplicateRows)} repeated an event_id`] : []),
    ...(rejectedRows ? [`${number(rejectedRows)} rejected`] : []),
  ];
  if (rejectedRows > shownRejects) say(`… and ${number(rejectedRows - shownRejects)} more rejected rows`);
  say(parts.join(', '));
  if (rejectedRows && !flags.dryRun) {
    say(`Rejected rows are kept: adtally rejects ${run.loads.join(' ')} lists them`);
  }
}

function stopOnSignal(): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const stop = () => {
    if (controller.signal.aborted) process.exit(1);
    say('stopping after the chunks in flight; once more stops at once');
    controller.abort();
  };
  for (const signal of signals) process.on(signal, stop);
  return {
    signal: controller.signal,
    release: () => {
      for (const signal of signals) process.off(signal, stop);
    },
  };
}

/** `replay`: returns the exit code. */
export async function replayRejects(store: Store, load: string, file: string): Promise<number> {
  await requireMigrated(store);
  await requireLoad(store, load);
  const { replayed, refused, loadId, skipped, faulty } = await replay(store, load, file, () => new Date(), {
    onWait: (other) => say(`waiting for load ${other}`),
  });
  for (const row of faulty) say(`still faulty: ${describeRejected(load, row)}`);
  say(
    [
      `${number(replayed)} rows replayed`,
      ...(faulty.length ? [`${number(faulty.length)} still faulty`] : []),
      ...(refused ? [`${number(refused)} refused by ClickHouse: adtally rejects ${loadId} lists them`] : []),
      ...(skipped ? [`${number(skipped)} replayed before or not of load ${load}`] : []),
    ].join(', '),
  );
  return faulty.length + refused > 0 ? exitRejected : 0;
}

/** `ingest campaigns` and the other lists. */
export async function ingestLists(
  store: Store,
  list: LookupList,
  args: readonly string[],
  format?: Format['name'],
): Promise<void> {
  for (const file of await expandFiles(args)) {
    if (list === lookupLists.confirmations) {
      const before = await unconfirmedDays(store);
      const rows = await loadLookupList(store, list, file, format);
      const changed = before - (await unconfirmedDays(store));
      say(`${file}: ${number(rows)} days confirmed, ${number(changed)} of them held unconfirmed revenue`);
    } else {
      say(`${file}: ${number(await loadLookupList(store, list, file, format))} ${list.table} loaded`);
    }
  }
}
