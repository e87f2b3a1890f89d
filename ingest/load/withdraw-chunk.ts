import type { Store } from '../../clickhouse/client.ts';
import { onServers } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { forgetRejected } from '../rejects/rejected-rows.ts';
import { deleteChunk } from './delete-chunk.ts';

/**
 * Deletes the events and the open rejected rows of a chunk that have arrived. First ends the statements that still send it: those of a loader
 * that was killed go on in the server, and would bring the chunk back under a token that nobody knows.
 */
export async function withdrawChunk(store: Store, chunk: string): Promise<void> {
  const sends = "startsWith(Settings['insert_deduplication_token'], {chunk:String})";
  await onServers(store, (server) =>
    retrying(async () => {
      const query = `KILL QUERY WHERE ${sends} SYNC FORMAT Null`;
      await server.command({ query, query_params: { chunk } });
    }),
  );
  for (const table of ['events', 'chunk_days']) await deleteChunk(store, table, chunk);
  await forgetRejected(store, chunk);
}
