import { eventColumns } from '../../catalog/events.ts';
import { cameBetween, loadOfChunk } from '../../clickhouse/came-between.ts';
import type { Store } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { fillSettings } from '../../clickhouse/consistency/replace-months.ts';
import { rollupPartition } from '../../clickhouse/rollups.ts';

/** What reports as of a moment need to know of an event. */
const columns = ['day', ...eventColumns.filter((name) => !/^event_/.test(name)), 'chunk', 'loaded_at'].join(
  ', ',
);

/** Events, as a condition on `events`, with its parameters. */
export interface Leaving {
  /** @param inDatabase prefix of tables of the whole store, for a statement that runs on a shard */
  readonly sql: (inDatabase?: string) => string;
  readonly params: Readonly<Record<string, unknown>>;
}

interface LeavingEvents extends Leaving {
  /** `yyyymm` */
  readonly months: readonly number[];
  /** Others come in their place; absent: they are taken back. */
  readonly replaced?: boolean;
}

/**
 * Keeps events that are about to leave, with the times between which they counted. To be called before the ledger forgets
 * when their chunks were loaded.
 * @param leftAt when the rewrite began that they leave in
 */
export async function keepPastEvents(
  store: Store,
  { sql, params, months, replaced = false }: LeavingEvents,
  leftAt: string,
): Promise<void> {
  await onShards(store, async ({ store: shard, part }) => {
    const whole = part ? `${part.layout.sharding.database}.` : '';
    const leaving = `${rollupPartition} IN {months:Array(UInt32)} AND ${sql(whole)}`;
    await shard.command({
      query: `INSERT INTO past_events (${columns}, load_id, replaced, came_after, came_by, left_at)
        SELECT ${columns}, c.load, ${replaced}, c.came_after, if(toUInt64(c.came_by) = 0, toDateTime64('2200-01-01', 6, 'UTC'), c.came_by),
          toDateTime64({leftAt:String}, 6, 'UTC')
        FROM (SELECT ${columns} FROM events WHERE ${leaving}) AS e
        LEFT JOIN (
          SELECT chunk AS name, ${loadOfChunk} AS load, ${cameBetween(whole)} FROM ${whole}load_chunks AS c
          WHERE chunk GLOBAL IN (SELECT toString(chunk) FROM events WHERE ${leaving}) GROUP BY chunk) AS c
          ON c.name = toString(e.chunk)`,
      query_params: { ...params, months, leftAt },
      clickhouse_settings: { ...fillSettings, max_partitions_per_insert_block: '0', wait_end_of_query: 1 },
    });
  });
}
