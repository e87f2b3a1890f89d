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
