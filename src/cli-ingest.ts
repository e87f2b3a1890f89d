import type { Store } from '../clickhouse/client.ts';
import { loadEvents } from '../ingest/events.ts';
import { expandFiles } from '../ingest/files.ts';
import type { Format } from '../ingest/formats.ts';
import { type ListTable, loadList } from '../ingest/names.ts';
import { eventProgress } from '../ingest/progress.ts';

interface EventOptions {
  readonly chunkBytes: number;
  readonly format?: Format['name'];
  readonly json?: boolean;
}

const number = (value: number) => value.toLocaleString('en');

/** `ingest events`: one file after the other; the first that fails ends the run. */
export async function ingestEvents(store: Store, args: string[], options: EventOptions): Promise<void> {
  const files = await expandFiles(args);
  const progress = await eventProgress(files);
  const startedAt = performance.now();
  const total = { files: files.length, rows: 0, repeated_rows: 0, bytes: 0, seconds: 0 };
  try {
    for (const file of files) {
      const counts = await loadEvents({
        store,
        file,
        chunkBytes: options.chunkBytes,
        ...(options.format && { format: options.format }),
        now: () => new Date(),
        onProgress: progress.onProgress,
      });
      total.rows += counts.rows;
      total.repeated_rows += counts.repeatedRows;
      total.bytes += counts.bytes;
    }
  } finally {
    progress.stop();
  }
  total.seconds = Math.round(performance.now() - startedAt) / 1000;
  if (options.json) process.stdout.write(`${JSON.stringify(total)}\n`);
  process.stderr.write(`${summary(total)}\n`);
}

function summary(total: { files: number; rows: number; repeated_rows: number; seconds: number }): string {
  const files = total.files === 1 ? '1 file' : `${number(total.files)} files`;
  if (total.rows === 0 && total.repeated_rows > 0) {
    return `nothing to do: all ${number(total.repeated_rows)} events of ${files} were already loaded`;
  }
  const repeated = total.repeated_rows ? `, ${number(total.repeated_rows)} were already loaded` : '';
  const rate = Math.round(total.rows / Math.max(0.001, total.seconds));
  return `${number(total.rows)} events loaded from ${files} in ${total.seconds} s (${number(rate)}/s)${repeated}`;
}

/** `ingest campaigns` and the other lists. */
export async function ingestLists(
  store: Store,
  list: ListTable,
  args: string[],
  format?: Format['name'],
): Promise<void> {
  for (const file of await expandFiles(args)) {
    const rows = await loadList(store, list, file, format);
    process.stderr.write(`${file}: ${number(rows)} ${list.table} loaded\n`);
  }
}
