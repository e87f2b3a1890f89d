import { type Store, select } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';

/** ClickHouse occasionally drops a mutation. After this many failures in a row the cause is something else. */
const maxDeletions = 20;

/**
 * Deletes the rows of a chunk on all shards. When several mutations start at once on a table, ClickHouse may report one
 * as done without applying it, so each deletion is checked and, if need be, repeated.
 * @param more a further condition in SQL
 * @throws when the rows are still there after many deletions
 */
export async function deleteChunk(store: Store, table: string, chunk: string, more = '1'): Promise<void> {
  const condition = `WHERE chunk = {chunk:String} AND ${more}`;
  await onShards(store, async (shard) => {
    for (let deletion = 1; deletion <= maxDeletions; deletion++) {
      await retrying(() =>
        shard.store.command({
          query: `ALTER TABLE ${table} DELETE ${condition}`,
          query_params: { chunk },
          clickhouse_settings: { mutations_sync: '2' },
        }),
      );
      const left = `SELECT 1 FROM ${table} ${condition} LIMIT 1`;
      if ((await retrying(() => select(shard.store, left, { chunk }))).length === 0) return;
    }
    throw new Error(
      `ClickHouse does not delete chunk ${chunk} from ${table}: see system.mutations, then run the same command again`,
    );
  });
}
