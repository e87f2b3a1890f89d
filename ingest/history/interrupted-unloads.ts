import { type Store, select } from '../../clickhouse/client.ts';
import { stateColumn } from '../ledger/load-heartbeat.ts';
import { defaultTimings } from '../ledger/load-timings.ts';

/** A load that an `unload` has begun to take back; the same command completes it. */
export interface InterruptedUnload {
  readonly load: string;
  /** Of its chunks, those that no load has loaded. */
  readonly chunks: number;
}

/**
 * Loads whose `unload` ended before it was done: nobody wants their files loaded again. A load whose chunks another has
 * loaded since is not among them.
 */
export function interruptedUnloads(store: Store): Promise<InterruptedUnload[]> {
  return select(
    store,
    `SELECT c.load_id AS load, toFloat64(uniqExact(c.chunk)) AS chunks FROM load_chunks AS c
     WHERE c.load_id IN (
         SELECT substring(l.file, length('unload of ') + 1) FROM loads AS l FINAL
         WHERE kind = 'rebuild' AND startsWith(l.file, 'unload of ') AND ${stateColumn} IN ('dead', 'failed'))
       AND c.load_id NOT IN (SELECT load_id FROM loads FINAL WHERE state = 'unloaded')
       AND c.chunk NOT IN (SELECT chunk FROM load_chunks WHERE toUInt64(loaded_at) > 0)
     GROUP BY load ORDER BY load`,
    { deadAfterMs: defaultTimings.deadAfterMs },
  );
}
