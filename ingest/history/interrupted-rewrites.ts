import { type Store, select } from '../../clickhouse/client.ts';
import { fresh } from '../ledger/load-heartbeat.ts';

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
