import { finished } from 'node:stream/promises';
import { ClickHouseError } from '@clickhouse/client';
import type { Store } from '../clickhouse/client.ts';
import type { RowFault } from './explain.ts';
import { type FileFormat, type Format, formatOf, InputError } from './formats.ts';
import { Ledger, type Load, type LoadCounts } from './ledger.ts';
import { lineChunks, parquetChunk, type Sendable } from './sources.ts';
import { insertEvents, insertSettings } from './statement.ts';

export interface EventLoadOptions {
  readonly store: Store;
  /** Path, or `-` for standard input. */
  readonly file: string;
  readonly format?: Format['name'];
  readonly chunkBytes: number;
  readonly now: () => Date;
  /** Told after every step; the object changes as the load goes on. */
  readonly onProgress?: (counts: Readonly<LoadCounts>) => void;
}

/**
 * Loads one file of events: every line is counted exactly once, however often and by whomever the same bytes
 * are loaded. A chunk with a faulty line is not loaded at all, and the load stops there.
 * @throws {InputError} that names the file, the line, the field and the reason
 */
export async function loadEvents(options: EventLoadOptions): Promise<LoadCounts> {
  const { store, file, now } = options;
  const fileFormat = formatOf(file, options.format);
  const ledger = new Ledger(store);
  const counts: LoadCounts = { rows: 0, repeatedRows: 0, bytes: 0, chunks: 0 };
  /** Chunks of this run: the same lines again in one file are the same events. */
  const sent = new Set<string>();
  const load = await ledger.begin(file, now());
  try {
    const cut = fileFormat.format.name === 'parquet' ? parquetChunk : lineChunks;
    const source = {
      file,
      fileFormat,
      chunkBytes: options.chunkBytes,
      knownChunks: (head: string) => ledger.knownChunks(head),
      onBytes: (bytes: number) => {
        counts.bytes += bytes;
        options.onProgress?.(counts);
      },
    };
    for await (const chunk of readAhead(cut(source))) {
      if (chunk.known?.loaded || sent.has(chunk.chunk)) counts.repeatedRows += chunk.rows;
      else {
        await sendChunk(store, ledger, load, chunk, fileFormat, file);
        sent.add(chunk.chunk);
        counts.rows += chunk.rows;
      }
      counts.chunks++;
      options.onProgress?.(counts);
    }
    await ledger.finish(load, counts);
    return counts;
  } catch (error) {
    await ledger.fail(load, counts, error instanceof Error ? error.message : String(error)).catch(() => {
      // The store is gone: the load stays visible as running, and the failure itself is what matters.
    });
    throw error;
  }
}

async function sendChunk(
  store: Store,
  ledger: Ledger,
  load: Load,
  chunk: Sendable,
  { format }: FileFormat,
  file: string,
): Promise<void> {
  await ledger.markSent(load, chunk);
  const loadTime = await ledger.loadTime(chunk.chunk, chunk.known !== undefined);
  try {
    const { stream } = await store.exec({
      query: insertEvents(format),
      values: chunk.content(),
      query_params: { chunk: chunk.chunk, loadTime },
      clickhouse_settings: insertSettings(chunk.chunk),
    });
    await finished(stream.resume());
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error;
    const fault = await chunk.explain();
    throw fault ? faultError(file, chunk, fault) : refusal(file, chunk, error);
  }
  await ledger.markLoaded(load, chunk);
}

/** Cuts and hashes the next chunk while the store works on this one. */
async function* readAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (;;) {
      const { value, done } = await next;
      if (done) return;
      next = source.next();
      next.catch(() => {
        // Seen when it is awaited above.
      });
      yield value;
    }
  } finally {
    await source.return(undefined);
  }
}

function faultError(file: string, { where }: Sendable, { line, field, reason }: RowFault): InputError {
  const place = `${file} ${where.startsWith('rows') ? 'row' : 'line'} ${line}`;
  return new InputError(
    `${place}: ${field ? `${field} ` : ''}${reason}\nNothing of ${where} was loaded. Correct it and load the file again: what is loaded already is not counted twice.`,
  );
}

function refusal(file: string, { where }: Sendable, cause: ClickHouseError): InputError {
  return new InputError(`${file} ${where}: ClickHouse refused them (${cause.type}): ${cause.message}`, {
    cause,
  });
}
