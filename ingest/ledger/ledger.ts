import { type Store, select } from '../../clickhouse/client.ts';
import { type RetryOptions, retrying } from '../../clickhouse/retry.ts';
import type { Load, LoadOptions } from './load.ts';
import { aliveLoads } from './load-heartbeat.ts';
import { defaultTimings, type LoadTimings } from './load-timings.ts';
import type { WaitOptions } from './wait-until.ts';

export interface SentChunk {
  /** sha256 of the content, hex: its name everywhere. */
  readonly id: string;
  /** sha256 of its first line, hex. */
  readonly firstLineHash: string;
  readonly bytes: number;
  /** Records. */
  readonly rows: number;
}

/** The record of every chunk ever sent and what became of it. All that is written to it can be repeated. */
export interface Ledger extends WaitOptions {
  readonly store: Store;
  readonly retries: RetryOptions;
  readonly timings: LoadTimings;
}

export interface LedgerOptions extends LoadOptions {
  /** Called when ClickHouse does not answer and is tried again. */
  readonly onRetry?: (error: Error) => void;
}

/** @param options its signal ends all waiting, also for a ClickHouse that does not answer, with an AbortError */
export function openLedger(store: Store, options: LedgerOptions = {}): Ledger {
  const { onRetry, onWait, signal, timings = defaultTimings } = options;
  return { store, timings, retries: { onRetry, signal }, onWait, signal };
}

/** Now, or after all that the ledger has of a chunk, should the clock have been set back. */
const later = `greatest(now64(6, 'UTC'), (
  SELECT max(s.sent_at) + INTERVAL 1 MICROSECOND FROM load_chunks AS s
  WHERE head = unhex({head:String}) AND chunk = {chunk:String}))`;

/** Records a chunk of a load, and that it is sent or loaded now. */
export async function recordChunk(
  { store, retries }: Ledger,
  load: Load,
  { firstLineHash, id, bytes, rows: records }: SentChunk,
  time?: 'sent_at' | 'loaded_at',
  counts = { rows: 0, rejectedRows: 0, duplicates: 0 },
): Promise<void> {
  const query = `
    INSERT INTO load_chunks (head, chunk, load_id, bytes, records, rows, rejected_rows, duplicate_rows${time ? `, ${time}` : ''})
    SELECT unhex({head:String}), {chunk:String}, {loadId:String}, {bytes:UInt64}, {records:UInt64}, {rows:UInt64},
           {rejectedRows:UInt64}, {duplicates:UInt64}${time ? `, ${later}` : ''}`;
  const query_params = { head: firstLineHash, chunk: id, bytes, records, ...counts, loadId: load.id };
  await retrying(() => store.command({ query, query_params }), retries);
}

/** The first of these loads that is running now. */
export async function firstAlive(
  { store, retries, timings }: Ledger,
  loads: readonly { readonly loadId: string }[],
): Promise<string | undefined> {
  if (loads.length === 0) return undefined;
  const ids = loads.map(({ loadId }) => loadId);
  const [other] = await retrying(() => aliveLoads(store, ids, timings), retries);
  return other;
}

/** The time of ClickHouse, `yyyy-mm-dd hh:mm:ss.ffffff`, UTC. */
export async function storeTime({ store, retries }: Ledger): Promise<string> {
  const query = "SELECT toString(now64(6, 'UTC')) AS now";
  const [row] = await retrying(() => select<{ now: string }>(store, query), retries);
  if (!row) throw new Error('ClickHouse did not tell its time');
  return row.now;
}
