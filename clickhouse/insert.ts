import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { Store } from './client.ts';

/** Data, and the statement that reads them. */
export interface DataInsert {
  /** Table and columns. */
  readonly into: string;
  /** What is stored of the data; absent: they are. */
  readonly select?: string;
  /** Format of the data. */
  readonly format: string;
  readonly data: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array>;
  readonly params?: Record<string, unknown>;
  readonly settings: ClickHouseSettings;
}

/**
 * Stores what a statement selects from data; resolves to the number of rows written once ClickHouse has them.
 *
 * The address has the beginning of the statement, and the body goes on with it before the data: whole in the address, a
 * statement of the loader (20 KiB) is refused by load balancers, which take 8 or 16 KiB.
 */
export async function insertData(store: Store, insert: DataInsert): Promise<number> {
  const { into, select = '', format, data, params, settings } = insert;
  const { stream, summary } = await store.exec({
    query: `INSERT INTO ${into}`,
    values: Readable.from(after(`${select} FORMAT ${format}\n`, data), { objectMode: false }),
    ...(params && { query_params: params }),
    clickhouse_settings: { ...settings, wait_end_of_query: 1 },
  });
  await finished(stream.resume());
  return Number(summary?.written_rows ?? 0);
}

async function* after(statement: string, data: DataInsert['data']): AsyncGenerator<Uint8Array | string> {
  yield statement;
  yield* data;
}
