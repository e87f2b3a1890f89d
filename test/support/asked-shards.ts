import { select } from '../../clickhouse/client.ts';
import type { TestStore } from './store.ts';

/** The shards that were asked for a rollup by reports of an account: of each report a list. */
export async function asked(test: TestStore, account: string, rollup: string): Promise<number[][]> {
  const initial = new Map<string, Set<number>>();
  for (const [n, shard] of test.shards.entries()) {
    await shard.command({ query: 'SYSTEM FLUSH LOGS' });
    const queries = await select<{ id: string; first: number; rows: number }>(
      shard,
      `SELECT initial_query_id AS id, is_initial_query AS first, toUInt32(read_rows) AS rows FROM system.query_log
       WHERE type = 'QueryFinish' AND position(query, {account:String}) > 0 AND position(query, {rollup:String}) > 0
         AND position(query, 'query_log') = 0`,
      { account: `'${account}'`, rollup },
    );
    for (const { id, first } of queries) {
      const shards = initial.get(id) ?? new Set();
      initial.set(id, shards);
      if (!first) shards.add(n + 1);
    }
  }
  return [...initial.values()].map((shards) => [...shards].sort());
}
