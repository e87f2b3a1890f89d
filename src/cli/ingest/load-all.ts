import type { Store } from '../../../clickhouse/client.ts';
import { retrying, titleOfPage } from '../../../clickhouse/retry.ts';
import { shownRejects } from '../../../ingest/delivery/chunk-outcome.ts';
import type { ValidMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import type { FormatName } from '../../../ingest/formats/formats.ts';
import { replacementOfAll } from '../../../ingest/history/replacements.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { type Input, versionOf } from '../../../ingest/input/input.ts';
import { noCounts } from '../../../ingest/ledger/load.ts';
import { Stopped } from '../../../ingest/ledger/load-error.ts';
import type { ChunkSize, LoadResult } from '../../../ingest/load/load-events.ts';
import { type FileLoadOptions, loadFiles } from '../../../ingest/load/load-files.ts';
import { loadedChunk } from '../../../ingest/load/receipt.ts';
import type { MappingFlags } from '../../../ingest/mapping/read-mapping.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';
import type { ReplaceOptions } from '../../../ingest/replace/replace-events.ts';
import { openTraces } from '../../observe/traces.ts';
import { config, counted, formatNumber, say, untilReportsShowIt } from '../command/command.ts';
import { FirstRejects } from './first-rejects.ts';
import { moveInto } from './move-loaded.ts';
import { eventProgress } from './progress.ts';
import { type ReplaceFlags, replace } from './replacement.ts';

export interface EventFlags extends MappingFlags, ReplaceFlags {
  readonly format?: FormatName;
  readonly maxRejects?: { readonly rows?: number; readonly percent?: number };
  readonly again?: boolean;
  /** Milliseconds; for places with a date in them. */
  readonly since?: number;
  /** Of a store of objects; absent: that of its provider. */
  readonly endpoint?: string;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

/** More of them say the same of other files. */
const mostWarnings = 10;

/** What loads of one command have in common. */
export interface EventLoads {
  readonly store: Store;
  readonly flags: EventFlags;
  readonly mapping: ValidMapping;
  readonly size: ChunkSize;
  /** Ends the load after the chunks in flight. */
  readonly signal: AbortSignal;
  /** What the files take the place of, and how they are called. */
  readonly replaces?: Pick<ReplaceOptions, 'target' | 'files'>;
}

/**
 * Loads files and says what came of it. Returns how many rejected rows of them are open.
 * @param callbacks of a follower
 */
export async function loadAll(
  { store, flags, mapping, size, signal, replaces }: EventLoads,
  files: readonly Input[],
  callbacks: Pick<FileLoadOptions, 'onLoaded' | 'onFailed'> = {},
): Promise<number> {
  const { moveTo, format, dedupe, again, dryRun } = flags;
  const versions = new Map(moveTo === undefined ? [] : files.map((file) => [file, versionOf(file)]));
  const progress = await eventProgress(files, (flags.quiet ?? false) || flags.follow !== undefined);
  const rejectLimit = flags.maxRejects && new RejectLimit(flags.maxRejects);
  const startedAt = performance.now();
  const loads: string[] = [];
  const total = noCounts();
  const rejects = new FirstRejects(files);
  /** Files that came before, and have no event that counts. */
  const without: { readonly file: string; readonly places: LoadResult['places'] }[] = [];
  const warnings = new Set<string>();
  const warn = (text: string) => {
    if (!warnings.has(text) && warnings.size < mostWarnings) progress.say(`warning: ${text}`);
    warnings.add(text);
  };
  const now = () => new Date();
  let open = 0;
  let loaded = 0;
  let sampled = false;
  const traces = await openTraces(config());
  const span = traces?.begin('ingest events', 'INTERNAL');
  let seconds: number | undefined;
  try {
    const options: FileLoadOptions = {
      ...size,
      ...{ format, dedupe, again, dryRun },
      store,
      readingOf: (file) => mappedReading(file, mapping, warn),
      roundMoney: mapping.roundMoney,
      dates: mapping.dates,
      timezone: mapping.timezone?.name,
      rejectLimit,
      onFailed: callbacks.onFailed,
      onLoaded: async (input, result) => {
        if (isWithout(result)) without.push({ file: input.name, places: result.places });
        if (moveTo !== undefined && !(await moveInto(moveTo, input, versions.get(input)))) {
          const next = callbacks.onLoaded ? 'it is read again' : 'run the same command again';
          progress.say(`${input.name} was changed while it was loaded, so it stays: ${next}`);
        }
        // A follower looks no more at what it has noted.
        await callbacks.onLoaded?.(input, result);
      },
      takeBack: async (load) => void (await unload(store, load, now, { signal })),
      now,
      signal,
      onProgress: progress.onProgress,
      onRejected: rejects.add,
      onSample: (table) => {
        if (!sampled) progress.say(table.trimEnd());
        sampled = true;
      },
      onWait: (other) => progress.say(`waiting for load ${other}`),
      onRetry: (error) =>
        progress.say(
          `ClickHouse does not respond: ${titleOfPage(error) ?? error.message}; retrying for two minutes`,
        ),
    };
    const { results, loadId } = replaces
      ? await replace(files, options, { ...replaces, ...flags })
      : { results: await loadFiles(files, options) };
    if (loadId) loads.push(loadId);
    for (const result of results) {
      loaded++;
      if (result.loadId) loads.push(result.loadId);
      open += result.openRejects;
      for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += result[name];
    }
    seconds = Math.round(performance.now() - startedAt) / 1000;
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    throw new Error('stopped. Rows already loaded are kept; run the same command again to continue', {
      cause: error,
    });
  } finally {
    span?.end({ attributes: spanOf(total, files.length, loads), failed: seconds === undefined });
    if (!dryRun) await untilReportsShowIt();
    progress.stop();
    for (const text of rejects.texts()) say(text);
    await traces?.stop().catch((error) => say(`spans not sent: ${error}`));
  }
  const replaced: string[] = [];
  for (const { file, places } of without.slice(0, mostWarnings)) {
    const known = await Promise.all(places.map((place) => loadedChunk({ store }, place)));
    const loadedBefore = known.filter((each) => each !== undefined);
    const by = await retrying(() => replacementOfAll(store, loadedBefore));
    if (by !== undefined)
      replaced.push(
        `nothing to do for ${file}: its events were replaced by load ${by}. --replaces ${by} puts the file in the place of all that load ${by} has brought`,
      );
  }
  if (loaded > 0) report(total, { files: loaded, seconds, loads, open, replaced }, flags);
  return open;
}

const isWithout = ({ rows, repeatedRows, rejectedRows, duplicateRows, leftOutRows }: LoadResult) =>
  rows + repeatedRows + rejectedRows + duplicateRows + leftOutRows === 0;

function spanOf(total: ReturnType<typeof noCounts>, files: number, loads: readonly string[]) {
  return {
    'adtally.files': files,
    'adtally.loads': [...loads],
    'adtally.rows': total.rows,
    'adtally.repeated_rows': total.repeatedRows,
    'adtally.rejected_rows': total.rejectedRows,
    'adtally.bytes': total.bytes,
  };
}

function report(
  total: ReturnType<typeof noCounts>,
  run: { files: number; seconds: number; loads: string[]; open: number; replaced: string[] },
  flags: EventFlags,
): void {
  const { rows, repeatedRows, rejectedRows, duplicateRows, leftOutRows, bytes } = total;
  if (flags.json) {
    process.stdout.write(
      `${JSON.stringify({ loads: run.loads, files: run.files, rows, repeated_rows: repeatedRows, rejected_rows: rejectedRows, duplicate_rows: duplicateRows, left_out_rows: leftOutRows, open_rejects: run.open, bytes, seconds: run.seconds })}\n`,
    );
  }
  const files = counted(run.files, 'file');
  const isNothing = rows + rejectedRows + duplicateRows + leftOutRows === 0;
  for (const each of run.replaced) say(each);
  // Rows that an earlier load of these files rejected.
  const waiting = run.open - rejectedRows;
  if (waiting > 0) {
    say(
      `${counted(waiting, 'row')} rejected before ${waiting === 1 ? 'waits' : 'wait'} for a correction: adtally rejects lists them, replay loads them, rejects --dismiss lets go of them. To read them with other flags (--ignore-unknown, --round-money), load the file with --replaces LOAD`,
    );
  }
  if (isNothing && repeatedRows > 0)
    say(`nothing to do: all ${counted(repeatedRows, 'event')} of ${files} were already loaded`);
  if (isNothing && repeatedRows + waiting + run.replaced.length > 0) return;
  const rate = formatNumber(Math.round(rows / Math.max(0.001, run.seconds)));
  const parts = [
    `${counted(rows, 'event')} ${flags.dryRun ? 'can be loaded' : 'loaded'} from ${files} in ${run.seconds} s (${rate}/s)`,
    ...(repeatedRows ? [`${formatNumber(repeatedRows)} already loaded before`] : []),
    ...(duplicateRows ? [`${formatNumber(duplicateRows)} skipped: their event_id is already loaded`] : []),
    ...(leftOutRows ? [`${formatNumber(leftOutRows)} left out by where`] : []),
    ...(rejectedRows ? [`${formatNumber(rejectedRows)} rejected`] : []),
  ];
  if (rejectedRows > shownRejects)
    say(`… and ${formatNumber(rejectedRows - shownRejects)} more rejected rows`);
  say(parts.join(', '));
  if (rejectedRows && run.open && !flags.dryRun) {
    say(`Rejected rows are kept; list them with: adtally rejects ${run.loads.join(' ')}`);
  }
}
