import { type Store, select } from '../../clickhouse/client.ts';
import { LoadRefused } from '../ledger/load-error.ts';
import type { ChunkSet } from '../load/chunk-months.ts';

/**
 * Chunks that leave have no row that was replayed: loaded again with other flags, or replaced by a corrected file, it would be an
 * event beside that of the replay.
 * Where the replay is being taken back, older versions of its rows still tell of it.
 * @param what is refused, as a message begins
 * @throws {LoadRefused} when a replay, also an unfinished one, has rows of the chunks
 */
export async function requireNotReplayed(
  store: Store,
  { sql, params }: ChunkSet,
  what: string,
): Promise<void> {
  const [found] = await select<{ replay: string; rows: number }>(
    store,
    `SELECT l.replay, toFloat64(uniqExact(r.chunk, r.line)) AS rows FROM rejected_rows AS r
     INNER JOIN (SELECT replay_id, max(load_id) AS replay FROM loads WHERE kind = 'replay' AND replay_id != '' GROUP BY replay_id) AS l
       ON l.replay_id = r.replay_id
     WHERE chunk IN ${sql} GROUP BY l.replay ORDER BY l.replay DESC LIMIT 1`,
    params,
  );
  if (!found) return;
  const rows = found.rows === 1 ? '1 rejected row was' : `${found.rows} rejected rows were`;
  throw new LoadRefused(
    `${what}: ${rows} replayed by load ${found.replay}. Take that load back first (adtally unload ${found.replay}): its rows are then open again. Nothing was changed.`,
  );
}
