import { select } from '../../clickhouse/client.ts';
import { firstRejects } from '../delivery/chunk-outcome.ts';
import { type Ledger, repeated } from '../ledger/ledger.ts';
import { describeRejected } from '../rejects/rejected-rows.ts';
import type { ChunkPlace } from './load-events.ts';

/** What the ledger says of a chunk that is loaded. */
export interface LoadedChunk {
  readonly chunk: string;
  /** The load that loaded it. */
  readonly load: string;
  readonly rows: number;
  readonly rejectedRows: number;
  /** Those that a condition or a replacement has left out. */
  readonly leftOutRows: number;
  /** Milliseconds since 1970. */
  readonly loadedAt: number;
}

/** @returns undefined for a chunk that is not loaded */
export const loadedChunk = repeated<ChunkPlace, LoadedChunk | undefined>(async (store, places) => {
  const query = `
    SELECT chunk, load_id AS load, toFloat64(max(c.rows)) AS rows, toFloat64(max(c.rejected_rows)) AS rejectedRows,
           toFloat64(max(c.left_out_rows)) AS leftOutRows,
           toFloat64(toUnixTimestamp64Milli(max(c.loaded_at) AS loaded)) AS loadedAt
    FROM load_chunks AS c
    WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32)) AND chunk IN {chunks:Array(String)}
    GROUP BY head, chunk, load_id HAVING toUInt64(loaded) > 0 ORDER BY loaded`;
  const found = await select<LoadedChunk>(store, query, {
    heads: places.map(({ head }) => head),
    chunks: places.map(({ id }) => id),
  });
  const byChunk = new Map(found.map((each) => [each.chunk, each]));
  return places.map(({ id }) => byChunk.get(id));
});

/** The first rejected rows of a chunk in words: `line 7: quantity must be …`. */
export async function firstReasons(ledger: Ledger, { id, unit }: ChunkPlace): Promise<string[]> {
  return (await firstRejects(ledger, id)).map((row) => describeRejected('', unit, row).trim());
}
