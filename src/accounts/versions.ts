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

/** Stands for the rows of a table: changes with every row that is added, replaced or deleted, by whatever clock. */
export type TableState = string;

/**
 * Which tokens services keep in memory: a token until it has ended for a week, so that logs say why it is refused. There may be
 * one for each visit of years. Tokens are let go at midnight of UTC alone, because services then read all others again.
 */
export const knownTokens = ['t.revoked_at', 't.expires_at']
  .map((ended) => `ifNull(${ended} >= toStartOfDay(now('UTC')) - INTERVAL 7 DAY, true)`)
  .join(' AND ');

/** The keys of these tables, and which rows services keep in memory. */
const kept = {
  tokens: ['id', knownTokens],
  account_limits: ['account_id', 'true'],
  account_currencies: ['account_id', 'true'],
  sign_outs: ['person', 'true'],
} as const;

/** The states of the tables, as `stateOf` computes them from the rows that are kept. */
export async function readStates<Table extends keyof typeof kept>(
  store: Store,
  ...tables: Table[]
): Promise<Record<Table, TableState>> {
  const stateIn = (table: Table) => {
    const [key, isKept] = kept[table];
    return `(SELECT concat(toString(count()), ' ', toString(sum(cityHash64(t.${key}, t.version)))) FROM ${table} AS t FINAL WHERE ${isKept}) AS ${table}`;
  };
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
