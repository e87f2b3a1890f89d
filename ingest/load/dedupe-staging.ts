import { type Store, select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { insertNewEvents, insertPublished, insertSettings } from '../event/event-insert.ts';

/**
 * Stores the events of a staged chunk whose event_id is new, then drops the chunk from staging. Returns how many of its
 * events were duplicates. Repeating it changes nothing.
 */
export async function countNew(store: Store, chunk: string, token: string): Promise<number> {
  const statements = (await layoutOf(store)) ? [insertNewEvents, insertPublished] : [insertNewEvents];
  for (const query of statements) {
    await store.command({
      query,
      query_params: { chunk },
      clickhouse_settings: insertSettings(token),
    });
  }
  const [row] = await select<{ duplicates: number }>(
    store,
    `SELECT toUInt32((SELECT count() FROM events_staging WHERE chunk = {chunk:String})
                   - (SELECT sum(d.events) FROM chunk_days AS d WHERE chunk = {chunk:String})) AS duplicates`,
    { chunk },
  );
  await dropStaged(store, chunk);
  return row?.duplicates ?? 0;
}

/** Drops a chunk from staging. */
export async function dropStaged(store: Store, chunk: string): Promise<void> {
  const query = 'ALTER TABLE events_staging DROP PARTITION {chunk:String}';
  await onShards(store, (shard) => shard.store.command({ query, query_params: { chunk } }));
}
