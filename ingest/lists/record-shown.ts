import type { Store } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';

/** Which names a load has stored: their versions begin with its own. */
interface LoadedNames {
  readonly dictionary: string;
  readonly version: string;
  readonly lines: number;
}

/** Records that from now on every report shows the names of a load. */
export async function recordShownNames(store: Store, names: LoadedNames): Promise<void> {
  const own = `dictionary = {dictionary:String} AND h.version >= toDateTime64({version:String}, 9, 'UTC')
    AND h.version < toDateTime64({version:String}, 9, 'UTC') + toIntervalNanosecond({lines:UInt64})`;
  await recordShown(store, 'past_names', own, { ...names });
}

/** The same of confirmations that have this time. */
export async function recordShownConfirmations(store: Store, confirmedAt: string): Promise<void> {
  const own = "h.confirmed_at = toDateTime64({confirmedAt:String}, 6, 'UTC')";
  await recordShown(store, 'past_confirmations', own, { confirmedAt });
}

async function recordShown(
  store: Store,
  table: 'past_names' | 'past_confirmations',
  own: string,
  query_params: Record<string, unknown>,
): Promise<void> {
  // Replicas have it a little later: nobody knows when.
  if ((await layoutOf(store))?.replicated) return;
  const target = table === 'past_names' ? await insertTargetOnAllNodes(store, table) : table;
  await store.command({
    query: `INSERT INTO ${target}
      SELECT * REPLACE (now64(6, 'UTC') AS shown_by) FROM ${table} AS h FINAL
      WHERE ${own} AND h.shown_by > now64(6, 'UTC')`,
    query_params,
    clickhouse_settings: { wait_end_of_query: 1 },
  });
}
