import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import type { KnownChunk } from '../chunks/cut-chunks.ts';
import { together } from '../ledger/batch-calls.ts';
import { firstAlive, type Ledger } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { waitUntil } from '../ledger/wait-until.ts';

/** Chunks of earlier runs whose first line has this hash. */
export function knownChunks(
  { store, retries }: Ledger,
  firstLineHash: string,
): Promise<readonly KnownChunk[]> {
  return retrying(() => chunksFrom(store, firstLineHash), retries);
}

const chunksFrom = together<string, readonly KnownChunk[]>(async (store, heads) => {
  const query = `
    SELECT lower(hex(c.head)) AS first, chunk, toFloat64(max(c.bytes)) AS length,
           toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded, toFloat64(max(c.rows)) AS counted,
           lower(hex(max(c.content))) AS content
    FROM load_chunks AS c WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32)) GROUP BY head, chunk`;
  const rows = await select<{
    first: string;
    chunk: string;
    length: number;
    loaded: 0 | 1;
    counted: number;
    content: string;
  }>(store, query, { heads });
  const known = new Map<string, KnownChunk[]>();
  for (const { first, chunk, length, loaded, counted, content } of rows) {
    const found = known.get(first) ?? [];
    found.push({ id: chunk, bytes: length, content, loadedRows: loaded ? counted : undefined });
    known.set(first, found);
  }
  return heads.map((head) => known.get(head) ?? []);
});

/** A load that is about to cut a chunk at a line, or has cut one. */
interface Turn {
  readonly head: string;
  readonly loadId: string;
}

// In two statements, for the same reason as a claim.
const beginTurn = turnWriter('toDateTime64(0, 6)');
const takeTurn = turnWriter('now64(6)');

/** @param turn the SQL expression of the turn */
function turnWriter(turn: string) {
  return together<Turn, void>(async (store, turns) => {
    const query = `INSERT INTO begun_chunks (head, load_id, turn) SELECT unhex(b.1), b.2, ${turn}
      FROM (SELECT arrayJoin(arrayZip({heads:Array(String)}, {loads:Array(String)})) AS b)`;
    const query_params = { heads: turns.map(({ head }) => head), loads: turns.map(({ loadId }) => loadId) };
    await store.command({ query, query_params });
    return turns.map(() => undefined);
  });
}

/** The turns of a line, in their order. */
const turnsOf = together<string, readonly { readonly loadId: string; readonly cut: 0 | 1 }[]>(
  async (store, heads) => {
    const query = `
      SELECT lower(hex(b.head)) AS first, load_id AS loadId,
             (head, load_id) IN (SELECT head, load_id FROM load_chunks WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32))) AS cut
      FROM begun_chunks AS b WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32))
      GROUP BY head, load_id ORDER BY max(b.turn), load_id`;
    const turns = await select<{ first: string; loadId: string; cut: 0 | 1 }>(store, query, { heads });
    return heads.map((head) => turns.filter(({ first }) => first === head));
  },
);

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
  const turn = { head: firstLineHash, loadId: load.id };
  await retrying(() => beginTurn(store, turn), retries);
  await retrying(() => takeTurn(store, turn), retries);
  const blockedBy = async () => {
    const begun = await retrying(() => turnsOf(store, firstLineHash), retries);
    const own = begun.findIndex(({ loadId }) => loadId === load.id);
    return firstAlive(
      ledger,
      begun.slice(0, own).filter(({ cut }) => !cut),
    );
  };
  await waitUntil(blockedBy, { onWait, signal, pollMs: timings.pollMs });
  return knownChunks(ledger, firstLineHash);
}
