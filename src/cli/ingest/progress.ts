import type { Input } from '../../../ingest/input/input.ts';
import type { LoadCounts } from '../../../ingest/ledger/load.ts';

export interface Progress {
  readonly onProgress: (counts: Readonly<LoadCounts>) => void;
  /** Prints a line above the bar. */
  say(text: string): void;
  stop(): void;
}

/**
 * A bar on standard error over the bytes of all files: bytes, events, time left. Nothing is drawn if
 * standard error is not a terminal. Files may be loaded at once: the counts of all are added up.
 */
export async function eventProgress(files: readonly Input[], quiet = false): Promise<Progress> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  if (quiet || !process.stderr.isTTY) return { onProgress: () => {}, say, stop: () => {} };
  const { SingleBar } = await import('cli-progress');
  const total = files.reduce((sum, file) => sum + (file.size() ?? 0), 0);
  const bar = new SingleBar({
    format:
      '{bar} {percentage} % of {files}, {megabytes} MB | {events} events, {rejected} rejected{leftOut} | {rate}/s | {eta_formatted} left',
    hideCursor: true,
    clearOnComplete: true,
    stopOnComplete: false,
    noTTYOutput: false,
  });
  const startedAt = performance.now();
  const sum = { bytes: 0, events: 0, rejected: 0, leftOut: 0 };
  const latest = new WeakMap<object, typeof sum>();
  const payload = () => {
    const rate = Math.round(sum.events / Math.max(0.001, (performance.now() - startedAt) / 1000));
    return {
      files: files.length === 1 ? '1 file' : `${files.length} files`,
      megabytes: Math.ceil(total / 1e6),
      events: sum.events.toLocaleString('en'),
      rejected: sum.rejected.toLocaleString('en'),
      leftOut: sum.leftOut > 0 ? `, ${sum.leftOut.toLocaleString('en')} left out` : '',
      rate: rate.toLocaleString('en'),
    };
  };
  bar.start(total, 0, payload());
  return {
    onProgress: (counts) => {
      const before = latest.get(counts) ?? { bytes: 0, events: 0, rejected: 0, leftOut: 0 };
      const now = {
        bytes: counts.bytes,
        events: counts.rows + counts.repeatedRows,
        rejected: counts.rejectedRows,
        leftOut: counts.leftOutRows,
      };
      for (const name of ['bytes', 'events', 'rejected', 'leftOut'] as const)
        sum[name] += now[name] - before[name];
      latest.set(counts, now);
      bar.update(sum.bytes, payload());
    },
    say: (text) => {
      // Clears the bar's line; its next update draws it again below.
      process.stderr.write(`\r\x1b[K${text}\n`);
    },
    stop: () => bar.stop(),
  };
}
