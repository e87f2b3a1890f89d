import type { Store } from '../../clickhouse/client.ts';
import { onServers } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { deleteChunks } from '../ledger/delete-chunks.ts';
import { forgetRejected } from '../rejects/rejected-rows.ts';

/**
 * Deletes the events and the open rejected rows of chunks that have arrived. First ends the statements that still send
 * them: those of a loader that was killed go on in the server, and would bring a chunk back under a token that nobody
 * knows.
 */
export async function withdrawChunks(store: Store, chunks: readonly string[]): Promise<void> {
  const sends = "splitByChar(' ', Settings['insert_deduplication_token'])[1] IN {chunks:Array(String)}";
  await onServers(store, (server) =>
    retrying(async () => {
      const query = `KILL QUERY WHERE ${sends} SYNC`;
      await server.command({ query, query_params: { chunks } });
    }),
  );
  for (const table of ['events', 'chunk_days']) await deleteChunks(store, table, { chunks });
  await forgetRejected(store, chunks);
}
