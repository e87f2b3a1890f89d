import { type Input, sizeOf } from '../../../ingest/input/input.ts';
import type { LoadCounts } from '../../../ingest/ledger/load.ts';
import { counted, formatNumber, say } from '../command/command.ts';

/**
 * A bar on standard error over the bytes of all files: bytes, events, time left. Nothing is drawn if
 * standard error is not a terminal. Files may be loaded at once: the counts of all are added up.
 */
export async function eventProgress(files: readonly Input[], quiet = false) {
  if (quiet || !process.stderr.isTTY) return { onProgress: () => {}, say, stop: () => {} };
  const { SingleBar } = await import('cli-progress');
  const total = files.reduce((sum, file) => sum + (sizeOf(file) ?? 0), 0);
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
      files: counted(files.length, 'file'),
      megabytes: Math.ceil(total / 1e6),
      events: formatNumber(sum.events),
      rejected: formatNumber(sum.rejected),
      leftOut: sum.leftOut > 0 ? `, ${formatNumber(sum.leftOut)} left out` : '',
      rate: formatNumber(rate),
    };
  };
  bar.start(total, 0, payload());
  return {
    onProgress: (counts: Readonly<LoadCounts>) => {
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
    /** Clears the bar's line; its next update draws it again below. */
    say: (text: string) => say(`\r\x1b[K${text}`),
    stop: () => bar.stop(),
  };
}
