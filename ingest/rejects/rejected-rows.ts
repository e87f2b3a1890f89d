import { type Store, select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { deleteChunk } from '../load/delete-chunk.ts';

/** A rule that a record breaks. */
export interface Fault {
  /** Empty when the record as a whole cannot be read. */
  readonly field: string;
  readonly reason: string;
}

/** A record that is no event: where it is, and why. */
export interface RejectedRow {
  readonly line: number;
  readonly faults: readonly Fault[];
}

/** Condition on `rejected_rows FINAL`: neither replayed nor dismissed. */
export const openRejects = 'replayed_at = 0 AND dismissed_at = 0';

/**
 * Condition on `rejected_rows AS r`: rows of the loads `{loads}`, also where another load sent the chunk first and
 * was interrupted.
 */
export const ofLoads = `(r.load_id IN {loads:Array(String)}
  OR r.chunk IN (SELECT chunk FROM load_chunks WHERE load_id IN {loads:Array(String)}))`;

/** `events.csv line 7: quantity must be …; device must be …` */
export function describeRejected(file: string, { line, faults }: RejectedRow): string {
  const what = faults.map(({ field, reason }) => (field ? `${field} ${reason}` : reason)).join('; ');
  return `${file} ${file.endsWith('.parquet') ? 'row' : 'line'} ${line}: ${what}`;
}

/** How many rejected rows of some chunks are open. */
export async function countOpenRejects(store: Store, chunks: readonly string[]): Promise<number> {
  if (chunks.length === 0) return 0;
  const query = `SELECT toUInt32(count()) AS open FROM rejected_rows FINAL WHERE chunk IN {chunks:Array(String)} AND ${openRejects}`;
  const [row] = await retrying(() => select<{ open: number }>(store, query, { chunks }));
  if (!row) throw new Error('ClickHouse did not count the rejected rows');
  return row.open;
}

/** Deletes what an earlier attempt has rejected of a chunk; not what is being replayed, or was. */
export async function forgetRejected(store: Store, chunk: string): Promise<void> {
  const open = "replay_id = ''";
  const query = `SELECT 1 FROM rejected_rows WHERE chunk = {chunk:String} AND ${open} LIMIT 1`;
  if ((await retrying(() => select(store, query, { chunk }))).length === 0) return;
  await deleteChunk(store, 'rejected_rows', chunk, open);
}
