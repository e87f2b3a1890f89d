import type { Store } from '../../clickhouse/client.ts';
import { onServers } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { deleteChunks } from '../ledger/delete-chunks.ts';
import { forgetRejected } from '../rejects/rejected-rows.ts';
import { batchesOf, dropStaged } from './staging.ts';

/** Deletes the events and the open rejected rows of chunks that have arrived. */
export async function withdrawChunks(store: Store, chunks: readonly string[]): Promise<void> {
  await stopSending(store, chunks);
  for (const table of ['events', 'chunk_days']) await deleteChunks(store, table, { chunks });
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
