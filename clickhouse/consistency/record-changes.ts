import { changesTable } from '../../catalog/breakdowns.ts';
import type { Store } from '../client.ts';
import { changedAt, type Rollup } from '../rollups.ts';
import type { DayRange } from './verify-rollups.ts';

/**
 * Records as changed now the days, by account, on which a rollup and its replacement differ in any row. On a single
 * node or on one shard.
 */
export async function recordDifferences(
  store: Store,
  { family, table, columns }: Pick<Rollup, 'family' | 'table' | 'columns'>,
  replacement: string,
  days: DayRange,
): Promise<void> {
  const compared = columns.map(({ name }) => name).filter((name) => name !== changedAt);
  const hash = `cityHash64(${compared.join(', ')})`;
  const rows = (source: string, count: number) =>
    `SELECT account_id, day, ${hash} AS row, ${count} AS counted FROM ${source} FINAL WHERE day BETWEEN {from:Date} AND {to:Date}`;
  await store.command({
    query: `INSERT INTO ${changesTable(family)} (account_id, day, changed_at)
            SELECT account_id, day, now64(6, 'UTC')
            FROM (${rows(table, -1)} UNION ALL ${rows(replacement, 1)})
            GROUP BY account_id, day HAVING groupBitXor(row) != 0 OR sum(counted) != 0`,
    query_params: { from: days.from, to: days.to },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
}
