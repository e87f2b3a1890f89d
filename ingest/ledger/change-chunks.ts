import { type Store, select } from '../../clickhouse/client.ts';
import { onShards } from '../../clickhouse/cluster/on-nodes.ts';
import { retrying } from '../../clickhouse/retry.ts';

/** ClickHouse occasionally drops a mutation. After this many failures in a row the cause is something else. */
const maxMutations = 20;

/** Names of chunks that go with one statement. */
const chunksAtOnce = 500;

/** Does something with chunks, as many at a time as one statement takes. */
export async function inRuns(
  chunks: readonly string[],
  work: (some: readonly string[]) => Promise<void>,
): Promise<void> {
  for (let first = 0; first < chunks.length; first += chunksAtOnce) {
    await work(chunks.slice(first, first + chunksAtOnce));
  }
}

/** Which rows of some chunks: a further condition in SQL, and its parameters. */
interface RowsOfChunks {
  readonly chunks: readonly string[];
  readonly condition?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/**
 * Changes rows of chunks on all shards by a mutation, after which none of them meets the condition any more. When
 * several mutations start at once on a table, ClickHouse may report one as done without applying it, so each is
 * checked and, if need be, repeated.
 * @param change `DELETE`, or `UPDATE` with its assignments
 * @throws when some still meet the condition after many attempts
 */
export async function changeChunks(
  store: Store,
  table: string,
  change: string,
  { chunks, condition = '1', params = {} }: RowsOfChunks,
): Promise<void> {
  const where = `WHERE chunk IN {chunks:Array(String)} AND ${condition}`;
  const query_params = { chunks, ...params };
  await onShards(store, async (shard) => {
    const left = () => select(shard.store, `SELECT 1 FROM ${table} ${where} LIMIT 1`, query_params);
    for (let mutations = 0; (await retrying(left)).length > 0; mutations++) {
      if (mutations === maxMutations) {
        throw new Error(
          `ClickHouse does not change ${chunks.length} chunks in ${table}, from ${chunks[0]} on: see system.mutations, restart ClickHouse (the embedded one restarts with adtally serve), then run the same command again`,
        );
      }
      await retrying(() =>
        shard.store.command({
          query: `ALTER TABLE ${table} ${change} ${where}`,
          query_params,
          clickhouse_settings: { mutations_sync: '2' },
        }),
      );
    }
  });
}
