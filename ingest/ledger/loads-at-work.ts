import { select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { remoteTable } from '../../clickhouse/cluster/on-nodes.ts';
import { together } from './batch-calls.ts';

const prefix = 'load ';

/** The setting `log_comment` of a statement that stores what loads send. */
export function commentOf(loadIds: readonly string[]): string {
  return `${prefix}${loadIds.join(' ')}`;
}

/** By the id of a load: its lock. */
type LoadsAtWork = ReadonlyMap<string, string>;

/**
 * The loads of this store whose events a server is storing now: the statement of a loader that was killed goes on once its
 * data are there. A server that is down is left out.
 */
export const loadsAtWork = together<undefined, LoadsAtWork>(async (store, asked) => {
  const layout = await layoutOf(store);
  const processes = layout
    ? remoteTable(store.address, layout.nodes, 'system', 'processes', ',')
    : 'system.processes';
  const found = await select<{ id: string }>(
    store,
    `SELECT DISTINCT arrayJoin(splitByChar(' ', substring(Settings['log_comment'], ${prefix.length + 1}))) AS id FROM ${processes}
     WHERE startsWith(Settings['log_comment'], '${prefix}')`,
    {},
    { skip_unavailable_shards: 1 },
  );
  // The server may have other stores.
  const own =
    found.length === 0
      ? []
      : await select<{ id: string; lock: string }>(
          store,
          'SELECT load_id AS id, max(l.lock) AS lock FROM loads AS l WHERE load_id IN {ids:Array(String)} GROUP BY load_id',
          { ids: found.map(({ id }) => id) },
        );
  const locks = new Map(own.map(({ id, lock }) => [id, lock]));
  return asked.map(() => locks);
});
