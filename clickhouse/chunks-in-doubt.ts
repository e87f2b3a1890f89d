import { type Store, select } from './client.ts';

/**
 * SQL of the chunks that no load has recorded as loaded: columns `head` and `chunk`. However large the ledger is, it reads
 * what is open: first the claims that are not completed, by an index, then by its key whether another load has completed
 * the chunk.
 * @param claims condition on the rows of `load_chunks` that claim them
 */
export function chunksInDoubt(claims = '1'): string {
  return `
    SELECT head, chunk FROM load_chunks
    WHERE (head, chunk) IN (SELECT head, chunk FROM load_chunks WHERE loaded_at = toDateTime64(0, 6, 'UTC') AND ${claims})
    GROUP BY head, chunk HAVING toUInt64(max(loaded_at)) = 0`;
}

/** To go on now could count events twice; the message says what to do first. */
export class UnsettledChunk extends Error {
  override readonly name = 'UnsettledChunk';
}

/**
 * @param before what cannot be done while such a chunk is in doubt
 * @param where SQL: a condition on `chunk`, `load_id` and `sent_at` of its claims, `c`
 * @throws {UnsettledChunk} naming the first of them by its load
 */
export async function requireNoChunkInDoubt(
  store: Store,
  before: 'rebuild' | 'prune' | 'close' | 'place' | 'grow',
  where: string,
  params: Record<string, unknown> = {},
): Promise<void> {
  const claims = `FROM load_chunks WHERE (head, chunk) IN (${chunksInDoubt()})`;
  const [found] = await select<{ chunk: string; load: string; file: string }>(
    store,
    `SELECT c.chunk AS chunk, any(c.load_id) AS load, any(l.file) AS file
     FROM (SELECT chunk, load_id, sent_at ${claims}) AS c
     LEFT JOIN (SELECT load_id, file FROM loads WHERE load_id IN (SELECT load_id ${claims})) AS l
       ON l.load_id = c.load_id
     WHERE ${where}
     GROUP BY c.chunk ORDER BY load LIMIT 1`,
    params,
  );
  if (!found) return;
  const { chunk, load, file } = found;
  throw new UnsettledChunk(
    `load ${load} was interrupted: it is unknown whether all of chunk ${chunk.slice(0, 12)} of ${file} arrived. Run its command again, or have its body sent again, which completes the chunk, or take it back with adtally unload ${load}; then ${before}. The other way round, its events could be counted twice.`,
  );
}
