import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, selectOne } from '../../clickhouse/client.ts';
import { changedAt } from '../../clickhouse/rollups.ts';
import { fresh, stateColumn } from '../ledger/load-heartbeat.ts';
import { leastLoadId } from '../ledger/load-records.ts';

/** Files whose loads fail. */
export interface FailingFiles {
  /** Files with a load that failed or died, and with no later load that was loaded or taken back. */
  readonly files: number;
  /** The file that failed last, with its load; empty if no file has failed. */
  readonly file: string;
  readonly load: string;
  /** How often it has failed since it was loaded last. */
  readonly times: number;
  readonly error: string;
}

/** Of loads that began within the last seven days. Their turns tell which came first, by the clock of ClickHouse. */
export async function failingFiles(store: Store, now: Date): Promise<FailingFiles> {
  return selectOne<FailingFiles>(
    store,
    `SELECT toFloat64(count()) AS files, argMax(name, last) AS file, max(last).2 AS load,
       toFloat64(argMax(failures, last)) AS times, max(last).3 AS error
     FROM (
       SELECT l.file AS name, maxIf(l.turn, now_state IN ('loaded', 'unloaded')) AS settled,
         arrayFilter(f -> f.1 >= settled, groupArrayIf((l.turn, l.load_id, l.error), now_state IN ('failed', 'dead'))) AS failed,
         length(failed) AS failures, arrayMax(failed) AS last
       FROM (SELECT load_id, turn, file, error, ${stateColumn} AS now_state FROM loads AS l FINAL
             WHERE load_id >= {since:String} AND kind != 'rebuild') AS l
       GROUP BY name HAVING failures > 0)`,
    { since: leastLoadId(now) },
  );
}

/** The load that has been under way for longest. Rebuilds and backups are loads, too: others wait for them. */
export interface LongestLoad {
  /** 0 while nothing loads. */
  readonly seconds: number;
  readonly load: string;
  readonly file: string;
}

export async function longestLoad(store: Store): Promise<LongestLoad> {
  return selectOne<LongestLoad>(
    store,
    `SELECT toFloat64(greatest(0, max(age))) AS seconds, argMax(load_id, age) AS load, argMax(name, age) AS file
     FROM (SELECT load_id, l.file AS name, dateDiff('second', l.started_at, now64(3)) AS age
           FROM loads AS l FINAL WHERE l.state = 'running' AND ${fresh})`,
  );
}

/**
 * When events were last counted, in seconds since 1970; 0: never. The coarsest rollups tell it, whoever loaded and
 * however that ended: a file without events, a repeated one and a load that fails add nothing to them. Of events that came in
 * the place of others, which a rebuild brings into the rollups, the end of their load tells it.
 */
export async function lastEventsAt(store: Store): Promise<number> {
  const cameAt = Object.keys(catalog.families).map(
    (family) => `SELECT max(r.${changedAt}) AS at FROM ${rollupTable(family, [])} AS r`,
  );
  const row = await selectOne<{ seconds: number }>(
    store,
    `SELECT toUnixTimestamp64Micro(max(at)) / 1e6 AS seconds FROM (${cameAt.join(' UNION ALL ')}
       UNION ALL SELECT toDateTime64(max(finished_at), 6, 'UTC') AS at FROM loads WHERE kind = 'replacement' AND state = 'loaded')`,
  );
  return row.seconds;
}
