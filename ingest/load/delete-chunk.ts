import { type Store, select } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';

/** A deletion is lost only by chance; so often in a row it is something else. */
const mostDeletions = 20;

/**
 * Deletes rows of a chunk, wherever they lie. Of deletions that begin at the same moment in one table ClickHouse can
 * take one for done that it never applies, so each is looked after.
 * @param more a further condition
 * @throws when rows stay there, however often they are deleted
 */
export async function deleteChunk(store: Store, table: string, chunk: string, more = '1'): Promise<void> {
  const condition = `WHERE chunk = {chunk:String} AND ${more}`;
  await onShards(store, async (shard) => {
    for (let deletion = 1; deletion <= mostDeletions; deletion++) {
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
