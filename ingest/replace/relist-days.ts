import { type Store, select } from '../../clickhouse/client.ts';
import { fillSettings } from '../../clickhouse/consistency/replace-months.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';
import { chunksOf } from '../history/unload.ts';
import { changeChunks, inRuns } from '../ledger/change-chunks.ts';
import type { Target } from './target.ts';

const inReach = 'day BETWEEN {from:Date} AND {to:Date}';

/**
 * Brings the ledger in line with the events after some were replaced: of each chunk the days, and the counts. Events that
 * left count as left out, so that their file stays loaded, and is not counted again when it comes again. Can be repeated.
 * @param loads of a target that is a load: those whose chunks are looked at
 * @param ranges the days on which events were replaced
 */
export async function relistDays(
  store: Store,
  target: Target,
  loads: readonly string[],
  ranges: readonly DayRange[],
): Promise<void> {
  if (ranges.length === 0) return;
  const { sql, params } = chunksOf(loads);
  const reach = {
    from: ranges.map(({ from }) => from).reduce((a, b) => (a < b ? a : b)),
    to: ranges.map(({ to }) => to).reduce((a, b) => (a > b ? a : b)),
  };
  const where = `${inReach} AND chunk != ''${'load' in target ? ` AND chunk IN ${sql}` : ''}`;
  const differing = await select<{ chunk: string }>(
    store,
    `SELECT DISTINCT chunk FROM (
       SELECT chunk, day, sum(b.stored) AS stored, sum(b.listed) AS listed FROM (
         SELECT toString(chunk) AS chunk, day, toInt64(count()) AS stored, toInt64(0) AS listed FROM events
         WHERE ${where} GROUP BY chunk, day
         UNION ALL
         SELECT chunk, day, toInt64(0), toInt64(sum(d.events)) FROM chunk_days AS d WHERE ${where} GROUP BY chunk, day
       ) AS b GROUP BY chunk, day HAVING stored != listed)`,
    { ...params, ...reach },
  );
  const differ = differing.map(({ chunk }) => chunk);
  await inRuns(differ, async (chunks) => {
    await recount(store, chunks, reach);
    await changeChunks(store, 'chunk_days', 'DELETE', { chunks, condition: inReach, params: { ...reach } });
    await store.command({
      query: `INSERT INTO chunk_days (chunk, day, events, loaded_at)
        SELECT toString(chunk) AS chunk, day, count(), max(e.loaded_at) FROM events AS e
        WHERE ${inReach} AND chunk IN {chunks:Array(String)} GROUP BY chunk, day`,
      query_params: { ...reach, chunks },
      clickhouse_settings: { ...fillSettings, wait_end_of_query: 1 },
    });
  });
}

/** Before the days of the chunks are listed anew: where this is interrupted, they still differ. */
async function recount(store: Store, chunks: readonly string[], reach: DayRange): Promise<void> {
  const counts = await select<{ chunk: string; rows: number }>(
    store,
    `SELECT chunk, toFloat64(sum(b.rows)) AS rows FROM (
       SELECT toString(chunk) AS chunk, count() AS rows FROM events
       WHERE ${inReach} AND chunk IN {chunks:Array(String)} GROUP BY chunk
       UNION ALL
       SELECT chunk, sum(d.events) FROM chunk_days AS d WHERE NOT ${inReach} AND chunk IN {chunks:Array(String)} GROUP BY chunk
     ) AS b GROUP BY chunk`,
    { ...reach, chunks },
  );
  const byChunk = new Map(counts.map(({ chunk, rows }) => [chunk, rows]));
  const now = 'transform(chunk, {chunks:Array(String)}, {rows:Array(UInt64)}, rows)';
  await changeChunks(
    store,
    'load_chunks',
    `UPDATE left_out_rows = left_out_rows + rows - ${now}, rows = ${now}`,
    {
      chunks,
      condition: `toUInt64(loaded_at) > 0 AND rows != ${now}`,
      params: { rows: chunks.map((chunk) => byChunk.get(chunk) ?? 0) },
    },
  );
}
