import { closing, type Store } from '../../clickhouse/client.ts';
import { Reader } from '../../clickhouse/reader.ts';

/** Of a month with very many rows the first one is long in coming. */
const idleTimeoutMs = 3_600_000;

/** A reader of this store while `work` runs. */
export async function withReader<T>(store: Store, work: (reader: Reader) => Promise<T>): Promise<T> {
  return closing(new Reader(store.address, idleTimeoutMs), work);
}
