import { type Store, select } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { onNodes } from '../../clickhouse/cluster/on-nodes.ts';
import { isTransient, retrying } from '../../clickhouse/retry.ts';
import { rememberedParts } from '../../clickhouse/timings.ts';
import { ask, type Ledger } from '../ledger/ledger.ts';

/**
 * Whether ClickHouse's insert deduplication can be relied on when a chunk is sent again under its token:
 * - `reliable`: what is missing is added, and nothing is stored twice.
 * - `unreliable`: everything may be stored twice, because the chunk was sent too long ago, rollups were rebuilt since, or the
 *   server was restored from a backup. Or missing rows may stay missing, because a killed server can have recorded a part's
 *   dedup id without keeping the part. Or revenue was confirmed since, and what is missing, under the time of the first claim,
 *   would pass for confirmed.
 */
export type DedupState = 'reliable' | 'unreliable';

/** The dedup state of a chunk that was sent at a time of ClickHouse. */
export async function dedupStateOf(ledger: Ledger, sentAt: string): Promise<DedupState> {
  const [row] = await ask<{ forgotten: number }>(
    ledger,
    `SELECT toUInt8(
         (SELECT uniqExact(chunk, toYYYYMM(day)) FROM chunk_days WHERE loaded_at > toDateTime64({sentAt:String}, 6, 'UTC')) > ${rememberedParts}
         OR (SELECT count() FROM loads FINAL WHERE kind IN ('rebuild', 'replacement') AND version > toDateTime64({sentAt:String}, 6, 'UTC')) > 0
         OR (SELECT max(c.confirmed_at) FROM confirmations AS c) >= toDateTime64({sentAt:String}, 6, 'UTC')) AS forgotten`,
    { sentAt },
  );
  if (row?.forgotten === 1) return 'unreliable';
  return (await anotherServerSince(ledger, sentAt)) ? 'unreliable' : 'reliable';
}

/**
 * Whether a server was started since a time, or its tables were restored from a backup, which remember no chunk. Also
 * true for a time in the future: the clock was set back, so nothing can be said. Every replica counts, since any of
 * them may have taken the chunk.
 */
async function anotherServerSince(ledger: Ledger, time: string): Promise<boolean> {
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
  const { store } = ledger;
  const layout = await retrying(() => layoutOf(store), ledger);
  if (!layout) return retrying(() => isLater(store), ledger);
  for (const node of layout.nodes) {
    const later = await onNodes(store, [node], layout.local, isLater).catch((error: unknown) => {
      // A server that does not answer will have been restarted by the time it does.
      if (error instanceof Error && isTransient(error)) return [true];
      throw error;
    });
    if (later.includes(true)) return true;
  }
  return false;
}
