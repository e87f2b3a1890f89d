import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import type { KnownChunk } from '../chunks/cut-chunks.ts';
import { firstAlive, type Ledger } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { waitUntil } from '../ledger/wait-until.ts';

/** Chunks of earlier runs whose first line has this hash. */
export async function knownChunks(
  { store, retries }: Ledger,
  firstLineHash: string,
): Promise<readonly KnownChunk[]> {
  const query = `
    SELECT chunk, toUInt32(max(c.bytes)) AS length, toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded,
           toUInt32(max(c.rows)) AS counted
    FROM load_chunks AS c WHERE head = unhex({head:String}) GROUP BY chunk`;
  const rows = await retrying(
    () =>
      select<{ chunk: string; length: number; loaded: 0 | 1; counted: number }>(store, query, {
        head: firstLineHash,
      }),
    retries,
  );
  return rows.map(({ chunk, length, loaded, counted }) => ({
    id: chunk,
    bytes: length,
    loadedRows: loaded ? counted : undefined,
  }));
}

/**
 * Makes this load the only one that cuts a chunk at a line; it has to claim that chunk next. Waits for loads that are
 * cutting there and have not claimed their chunk yet. Resolves to the chunks known at that point.
 */
export async function beginChunk(
  ledger: Ledger,
  load: Load,
  firstLineHash: string,
): Promise<readonly KnownChunk[]> {
  const { store, retries, timings, onWait, signal } = ledger;
  // In two statements, for the same reason as a claim.
  for (const turn of ['toDateTime64(0, 6)', 'now64(6)']) {
    const query = `INSERT INTO begun_chunks (head, load_id, turn) SELECT unhex({head:String}), {loadId:String}, ${turn}`;
    const query_params = { head: firstLineHash, loadId: load.id };
    await retrying(() => store.command({ query, query_params }), retries);
  }
  const begunChunks = `
    SELECT load_id AS loadId, load_id IN (SELECT load_id FROM load_chunks WHERE head = unhex({head:String})) AS cut
    FROM begun_chunks AS b WHERE head = unhex({head:String}) GROUP BY load_id ORDER BY max(b.turn), load_id`;
  const blockedBy = async () => {
    const begun = await retrying(
      () => select<{ loadId: string; cut: 0 | 1 }>(store, begunChunks, { head: firstLineHash }),
      retries,
    );
    const own = begun.findIndex(({ loadId }) => loadId === load.id);
    return firstAlive(
      ledger,
      begun.slice(0, own).filter(({ cut }) => !cut),
    );
  };
  await waitUntil(blockedBy, { onWait, signal, pollMs: timings.pollMs });
  return knownChunks(ledger, firstLineHash);
}
