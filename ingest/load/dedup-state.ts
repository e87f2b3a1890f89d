import { type Store, select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { onNodes } from '../../clickhouse/cluster/on-nodes.ts';
import { isTransient, type RetryOptions, retrying } from '../../clickhouse/retry.ts';

/**
 * What to expect of the engine when a chunk in doubt is sent again under its name:
 * - `reliable`: it adds what is missing, and nothing twice.
 * - `may-lose-rows`: what is missing may stay missing: a server that is killed can have noted the name of a part that it
 *   did not keep. One that was restored from a backup may even keep all of it twice.
 * - `expired`: the chunk was sent so long ago, or rollups were rebuilt since, that all of it may be kept twice.
 */
export type DedupState = 'reliable' | 'may-lose-rows' | 'expired';

/** The engine remembers 10,000 parts of each table; a chunk makes one for each month it touches. */
const rememberedParts = 5_000;

/** What the engine knows of a chunk that was sent at that time. */
export async function dedupStateOf(store: Store, sentAt: string, retries: RetryOptions): Promise<DedupState> {
  const [row] = await retrying(
    () =>
      select<{ forgotten: number }>(
        store,
        `SELECT toUInt8(
         (SELECT uniqExact(chunk, toYYYYMM(day)) FROM chunk_days WHERE loaded_at > toDateTime64({sentAt:String}, 6, 'UTC')) > ${rememberedParts}
         OR (SELECT count() FROM loads FINAL WHERE kind = 'rebuild' AND version > toDateTime64({sentAt:String}, 6, 'UTC')) > 0) AS forgotten`,
        { sentAt },
      ),
    retries,
  );
  if (row?.forgotten === 1) return 'expired';
  return (await anotherServerSince(store, sentAt, retries)) ? 'may-lose-rows' : 'reliable';
}

/**
 * Whether a server was started since, or its tables were restored from a backup, which remember no chunk; a time that
 * is still to come, because the clock was set back, does not tell. Of replicas each counts: any of them may have taken
 * the chunk.
 */
async function anotherServerSince(store: Store, time: string, retries: RetryOptions): Promise<boolean> {
  const isLater = async (node: Store) => {
    const [row] = await select<{ later: number }>(
      node,
      `SELECT toUInt8(greatest(
         now64(6, 'UTC') - toIntervalSecond(uptime()),
         (SELECT toDateTime64(max(metadata_modification_time), 6, 'UTC') + INTERVAL 1 SECOND
          FROM system.tables WHERE database = currentDatabase() AND name = 'events')
       ) > toDateTime64({time:String}, 6, 'UTC')
         OR toDateTime64({time:String}, 6, 'UTC') > now64(6) + INTERVAL 1 MINUTE) AS later`,
      { time },
    );
    return row?.later === 1;
  };
  const layout = await retrying(() => layoutOf(store), retries);
  if (!layout) return retrying(() => isLater(store), retries);
  for (const node of layout.nodes) {
    const later = await onNodes(store, [node], layout.local, isLater).catch((error: unknown) => {
      // One that does not answer will have been started again when it does.
      if (error instanceof Error && isTransient(error)) return [true];
      throw error;
    });
    if (later.includes(true)) return true;
  }
  return false;
}
