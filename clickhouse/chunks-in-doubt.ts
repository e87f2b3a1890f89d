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

/** A chunk that no load has recorded as loaded, with a load that claimed it and its file. */
interface ChunkInDoubt {
  readonly chunk: string;
  readonly load: string;
  readonly file: string;
}

/** The first of them by its load. @param where SQL: a condition on `chunk`, `load_id` and `sent_at` of its claims, `c` */
export async function chunkInDoubt(
  store: Store,
  where: string,
  params: Record<string, unknown> = {},
): Promise<ChunkInDoubt | undefined> {
  const claims = `FROM load_chunks WHERE (head, chunk) IN (${chunksInDoubt()})`;
  const [found] = await select<ChunkInDoubt>(
    store,
    `SELECT c.chunk AS chunk, any(c.load_id) AS load, any(l.file) AS file
     FROM (SELECT chunk, load_id, sent_at ${claims}) AS c
     LEFT JOIN (SELECT load_id, file FROM loads WHERE load_id IN (SELECT load_id ${claims})) AS l
       ON l.load_id = c.load_id
     WHERE ${where}
     GROUP BY c.chunk ORDER BY load LIMIT 1`,
    params,
  );
  return found;
}
