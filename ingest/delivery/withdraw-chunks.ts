import type { Store } from '../../clickhouse/client.ts';
import { onServers } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { changeChunks } from '../ledger/change-chunks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { forgetRejected } from '../rejects/rejected-rows.ts';
import { markWithdrawn } from './chunk-outcome.ts';
import { batchesOf, dropStaged } from './staging.ts';

/** The ledger knows of chunks no more that they are loaded: whoever loads them mends what there is of them. */
export async function putInDoubt(ledger: Ledger, load: Load, chunks: readonly string[]): Promise<void> {
  // In this order a load that comes in between mends them.
  await markWithdrawn(ledger, load, chunks);
  await forgetLoaded(ledger.store, chunks);
}

/** The second half of it, for those that are withdrawn already. */
export async function forgetLoaded(store: Store, chunks: readonly string[]): Promise<void> {
  const change =
    'UPDATE loaded_at = toDateTime64(0, 6), records = 0, rows = 0, rejected_rows = 0, duplicate_rows = 0, left_out_rows = 0';
  await changeChunks(store, 'load_chunks', change, { chunks, condition: 'toUInt64(loaded_at) > 0' });
}

/**
 * Call it before chunks are withdrawn without `unload` or a replacement: nothing keeps their rows, so no report as of an earlier
 * moment can be told for these months, and none at all until their rollups are rebuilt.
 */
export async function forgetPast(store: Store, chunks: readonly string[]): Promise<void> {
  const query = `INSERT INTO rewrites (month, began_at)
    SELECT DISTINCT toYYYYMM(day), now64(6, 'UTC') FROM chunk_days WHERE chunk IN {chunks:Array(String)}`;
  await retrying(() => store.command({ query, query_params: { chunks } }));
}

/** Deletes the events and the open rejected rows of chunks that have arrived. */
export async function withdrawChunks(store: Store, chunks: readonly string[]): Promise<void> {
  await stopSending(store, chunks);
  for (const table of ['events', 'chunk_days']) await changeChunks(store, table, 'DELETE', { chunks });
  await forgetRejected(store, chunks);
}

/**
 * Lets go of batches that hold some of these chunks, and ends the statements that still send them: those of a loader that was
 * killed go on in the server, and would bring a chunk back under a token that nobody knows.
 */
export async function stopSending(store: Store, chunks: readonly string[]): Promise<void> {
  const batches = await retrying(() => batchesOf(store, chunks));
  if (batches.length > 0) await retrying(() => dropStaged(store, batches));
  const sends = "splitByChar(' ', Settings['insert_deduplication_token'])[1] IN {tokens:Array(String)}";
  await onServers(store, (server) =>
    retrying(async () => {
      const query = `KILL QUERY WHERE ${sends} SYNC`;
      await server.command({ query, query_params: { tokens: [...chunks, ...batches] } });
    }),
  );
}
