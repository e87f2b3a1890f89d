import { changesTable } from '../../catalog/breakdowns.ts';
import type { Store } from '../client.ts';
import { changedAt, type Rollup } from '../rollups.ts';
import type { DayRange } from './verify-rollups.ts';

/**
 * Records as changed now the days, by account, on which a rollup and its replacement differ in any row, and of the others
 * when a load last changed them, which only the old rollup knows. On a single node or on one shard.
 */
export async function recordDifferences(
  store: Store,
  { family, table, columns }: Pick<Rollup, 'family' | 'table' | 'columns'>,
  replacement: string,
  days: DayRange,
): Promise<void> {
  const compared = columns.filter(({ name }) => name !== changedAt);
  const hash = `cityHash64(${compared.map(({ name }) => name).join(', ')})`;
  const changed = compared.length < columns.length ? changedAt : "toDateTime64(0, 6, 'UTC')";
  const rows = (source: string, count: number) =>
    `SELECT account_id, day, ${hash} AS row, ${count} AS counted, ${changed} AS changed FROM ${source} FINAL WHERE day BETWEEN {from:Date} AND {to:Date}`;
  await store.command({
    query: `INSERT INTO ${changesTable(family)} (account_id, day, changed_at)
            SELECT account_id, day, if(groupBitXor(row) != 0 OR sum(counted) != 0, now64(6, 'UTC'), max(changed)) AS last
            FROM (${rows(table, -1)} UNION ALL ${rows(replacement, 1)})
            GROUP BY account_id, day HAVING toUInt64(last) > 0`,
    query_params: { from: days.from, to: days.to },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
}
