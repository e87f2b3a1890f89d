import { chunksInDoubt } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { fresh, stateColumn } from '../ledger/load-heartbeat.ts';
import { leavingLoads, unloadOf } from '../ledger/load-records.ts';

/** A load that an `unload` has begun to take back; the same command completes it. */
export interface InterruptedUnload {
  readonly load: string;
  /** Of its chunks, those that no load has loaded. */
  readonly chunks: number;
}

/**
 * Loads whose `unload` ended before it was done: nobody wants their files loaded again. A load whose chunks another has
 * loaded since is not among them, nor one whose `unload` was refused or has marked none of its chunks as
 * withdrawn.
 */
export async function interruptedUnloads(store: Store): Promise<InterruptedUnload[]> {
  const interrupted = await select<{ id: string; load: string }>(
    store,
    `SELECT load_id AS id, substring(l.file, length({unload:String}) + 1) AS load FROM loads AS l FINAL
     WHERE l.state IN ('running', 'failed') AND kind = 'rebuild' AND startsWith(l.file, {unload:String})
       AND ${stateColumn} IN ('dead', 'failed') AND load NOT IN (${leavingLoads})`,
    { unload: unloadOf('') },
  );
  if (interrupted.length === 0) return [];
  const claimed = `load_id IN {loads:Array(String)}
    AND load_id NOT IN (SELECT load_id FROM loads FINAL WHERE load_id IN {loads:Array(String)} AND state = 'unloaded')`;
  return select(
    store,
    `SELECT load_id AS load, toFloat64(uniqExact(chunk)) AS chunks FROM load_chunks
     WHERE ${claimed} AND (head, chunk) IN (${chunksInDoubt(claimed)})
     GROUP BY load HAVING countIf(chunk IN (SELECT chunk FROM withdrawn_chunks WHERE load_id IN {unloads:Array(String)})) > 0
     ORDER BY load`,
    { loads: interrupted.map(({ load }) => load), unloads: interrupted.map(({ id }) => id) },
  );
}

/**
 * The months, `yyyymm`, whose reports were being changed when that was interrupted: no moment of them is told before another
 * change of them ends. While one may be under way there is nothing to say.
 */
export async function interruptedRewrites(store: Store): Promise<number[]> {
  const found = await select<{ month: number }>(
    store,
    `SELECT DISTINCT month FROM rewrites AS r FINAL WHERE month > 0 AND r.ended_at = 0
       AND (SELECT count() FROM loads AS l FINAL WHERE state = 'running' AND kind IN ('rebuild', 'replacement') AND ${fresh}) = 0
     ORDER BY month`,
  );
  return found.map(({ month }) => month);
}
