import { stat } from 'node:fs/promises';
import { SingleBar } from 'cli-progress';
import type { LoadCounts } from './ledger.ts';

export interface Progress {
  readonly onProgress: (counts: Readonly<LoadCounts>) => void;
  stop(): void;
}

/**
 * A bar on standard error over the bytes of all files: bytes, events, time left. Nothing is drawn where
 * standard error is no terminal. Counts of one file follow those of the one before it.
 */
export async function eventProgress(files: readonly string[]): Promise<Progress> {
  const sizes = await Promise.all(
    files.map((file) => (file === '-' ? 0 : stat(file).then(({ size }) => size))),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (!process.stderr.isTTY) return { onProgress: () => {}, stop: () => {} };
  const bar = new SingleBar({
    format: '{bar} {percentage} % of {megabytes} MB | {events} events | {rate}/s | {eta_formatted} left',
    hideCursor: true,
    clearOnComplete: true,
    stopOnComplete: false,
    noTTYOutput: false,
  });
  const startedAt = performance.now();
  const before = { bytes: 0, events: 0 };
  let current: Readonly<LoadCounts> | undefined;
  const latest = { bytes: 0, events: 0 };
  const payload = () => {
    const events = before.events + latest.events;
    const rate = Math.round(events / Math.max(0.001, (performance.now() - startedAt) / 1000));
    return {
      megabytes: Math.ceil(total / 1e6),
      events: events.toLocaleString('en'),
      rate: rate.toLocaleString('en'),
    };
  };
  bar.start(total, 0, payload());
  return {
    onProgress: (counts) => {
      if (current !== counts) {
        before.bytes += latest.bytes;
        before.events += latest.events;
        current = counts;
      }
      latest.bytes = counts.bytes;
      latest.events = counts.rows + counts.repeatedRows;
      bar.update(before.bytes + latest.bytes, payload());
    },
    stop: () => bar.stop(),
  };
}
