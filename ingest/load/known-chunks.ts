import { select } from '../../clickhouse/client.ts';
import type { KnownChunk } from '../chunks/sendable-chunk.ts';
import { repeated } from '../ledger/ledger.ts';

/** The chunks that loads have sent, or were about to send, from a place in their input, in the order of `firstCut`. */
export const knownChunks = repeated<string, readonly KnownChunk[]>(async (store, heads) => {
  const query = `
    SELECT lower(hex(c.head)) AS first, chunk, toFloat64(max(c.bytes)) AS length,
           toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded, toFloat64(max(c.rows)) AS counted,
           lower(hex(max(c.content))) AS content
    FROM load_chunks AS c WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32)) GROUP BY head, chunk ORDER BY loaded DESC, length DESC, first, chunk`;
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
