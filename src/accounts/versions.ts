import { type Store, selectOne } from '../../clickhouse/client.ts';

/** A row of one of these tables; only its latest version counts. */
export interface Versioned {
  /** `yyyy-mm-dd hh:mm:ss.ffffff` */
  readonly version: string;
  /** Of its key and version; a table's state is the sum of all. */
  readonly digest: string;
}

/**
 * The version of a row that replaces the one of `latest`: now, or just after it, however far ahead the clock was that
 * it was written by.
 */
export function versionAfter(latest: string): string {
  return `greatest(now64(6, 'UTC'), ${latest} + INTERVAL 1 MICROSECOND)`;
}

/** Stands for all rows of a table: changes with every row that is added, replaced or deleted, by whatever clock. */
export type TableState = string;

/** The keys of these tables. */
const keys = {
  tokens: 'id',
  account_limits: 'account_id',
  account_currencies: 'account_id',
  sign_outs: 'person',
} as const;

/** The states of the tables, as `stateOf` computes them from their rows. */
export async function readStates<Table extends keyof typeof keys>(
  store: Store,
  ...tables: Table[]
): Promise<Record<Table, TableState>> {
  const stateIn = (table: Table) =>
    `(SELECT concat(toString(count()), ' ', toString(sum(cityHash64(t.${keys[table]}, t.version)))) FROM ${table} AS t FINAL) AS ${table}`;
  return selectOne<Record<Table, TableState>>(store, `SELECT ${tables.map(stateIn).join(', ')}`);
}

/** The expression of a row's digest. */
export function digestOf(columns: string): string {
  return `toString(cityHash64(${columns}))`;
}

/** @param sum of the digests of all rows */
export function stateOf(rows: number, sum: bigint): TableState {
  return `${rows} ${BigInt.asUintN(64, sum)}`;
}
