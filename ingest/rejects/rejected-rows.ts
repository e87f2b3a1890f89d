import { type Store, select, selectOne } from '../../clickhouse/client.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { describePlace } from '../event/record-place.ts';
import { changeChunks } from '../ledger/change-chunks.ts';
import { type Ledger, repeated } from '../ledger/ledger.ts';

/** A rule that a record breaks. */
export interface Fault {
  /** Empty when the record as a whole cannot be read. */
  readonly field: string;
  readonly reason: string;
}

/** A record that is no event: where it is, and why. */
export interface RejectedRow {
  /** See record-place.ts. */
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

/** `events.csv line 7: quantity must be …; device, site_id must be …`: a reason is said once. */
export function describeRejected(
  file: string,
  unit: SendableChunk['unit'],
  { line, faults }: RejectedRow,
): string {
  const fields = new Map<string, string[]>();
  for (const { field, reason } of faults) fields.set(reason, [...(fields.get(reason) ?? []), field]);
  const what = [...fields].map(([reason, names]) => `${names.join(', ')} ${reason}`.trim());
  return `${file} ${describePlace(unit, line)}: ${what.join('; ')}`;
}

/** How many rejected rows of some chunks are open. */
export async function countOpenRejects(ledger: Ledger, ids: readonly string[]): Promise<number> {
  const counts = await Promise.all(ids.map((id) => openRejectsOf(ledger, id)));
  return counts.reduce((sum, open) => sum + open, 0);
}

const openRejectsOf = repeated<string, number>(async (store, chunks) => {
  const query = `SELECT chunk, toFloat64(count()) AS open FROM rejected_rows FINAL
    WHERE chunk IN {chunks:Array(String)} AND ${openRejects} GROUP BY chunk`;
  const rows = await select<{ chunk: string; open: number }>(store, query, { chunks });
  const open = new Map(rows.map((row) => [row.chunk, row.open]));
  return chunks.map((chunk) => open.get(chunk) ?? 0);
});

/** Condition on `rejected_rows`: dismissed. Such a row stays when its chunk comes again, also where that makes an event of it. */
export const dismissedRejects = "(replay_id = '' AND dismissed_at != 0)";

/**
 * Deletes what was rejected of chunks; not what is being replayed, or was, or is dismissed.
 * @param but the load whose rows stay
 */
export async function forgetRejected(store: Store, chunks: readonly string[], but = ''): Promise<void> {
  const condition = "replay_id = '' AND dismissed_at = 0 AND load_id != {but:String}";
  await changeChunks(store, 'rejected_rows', 'DELETE', { chunks, condition, params: { but } });
}

/** What is told of a rejected row that is open again with its corrected fields. */
export const correctedOnce = 'its correction was taken back: replay loads it once more';

/** Opens the rejected rows of a replay again, with their corrected fields. Can be repeated. */
export async function reopenRejects(store: Store, replayId: string): Promise<void> {
  const condition = 'replay_id = {id:String}';
  const params = { id: replayId };
  const query = `SELECT DISTINCT chunk FROM rejected_rows WHERE ${condition}`;
  const chunks = (await select<{ chunk: string }>(store, query, params)).map(({ chunk }) => chunk);
  if (chunks.length === 0) return;
  await store.command({
    query: `INSERT INTO rejected_rows (chunk, line, load_id, file, faults, raw, fields)
            SELECT chunk, line, load_id, file, [('', {told:String})], raw, fields FROM rejected_rows FINAL WHERE ${condition}`,
    query_params: { ...params, told: correctedOnce },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
  // Older versions must not come back when an open one is deleted.
  await changeChunks(store, 'rejected_rows', 'DELETE', { chunks, condition, params });
}

/**
 * Lets go of open rejected rows, but for those that are being replayed. Returns how many there were.
 * Their new version follows right upon the old one, so that a replay which begins at the same time wins.
 * @param condition on `rejected_rows AS r`, with its parameters
 */
export async function dismissRejects(
  store: Store,
  condition: string,
  params: Readonly<Record<string, unknown>>,
): Promise<number> {
  const open = `${condition} AND ${openRejects} AND replay_id = ''`;
  const counted = `SELECT toFloat64(count()) AS open FROM rejected_rows AS r FINAL WHERE ${open}`;
  const row = await selectOne<{ open: number }>(store, counted, params);
  if (row.open === 0) return 0;
  await store.command({
    query: `INSERT INTO rejected_rows (chunk, line, load_id, file, faults, raw, fields, dismissed_at, version)
            SELECT r.chunk, r.line, r.load_id, r.file, r.faults, r.raw, r.fields, now64(3), r.version + INTERVAL 1 MICROSECOND
            FROM rejected_rows AS r FINAL WHERE ${open}`,
    query_params: params,
    clickhouse_settings: { wait_end_of_query: 1 },
  });
  return row.open;
}
