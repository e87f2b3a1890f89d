import { type Store, select } from '../../clickhouse/client.ts';
import type { UnconfirmedDay } from './canonical-text.ts';
import type { Month } from './month.ts';

/** A month of an account that was closed. */
export interface Close {
  readonly account: string;
  readonly month: Month;
  readonly revision: string;
  /** The revision that was closed before it; empty: none was. */
  readonly previous: string;
  /** `yyyy-mm-dd hh:mm:ss.ffffff`, UTC */
  readonly closed_at: string;
  readonly rows: number;
  /** The days whose money was unconfirmed then. */
  readonly unconfirmed: readonly UnconfirmedDay[];
  /** Rejected rows that were open then and may have been of the month. */
  readonly open_rejects: number;
}

/** Which closes are asked for; absent: all. */
export interface WhichCloses {
  readonly account?: string;
  readonly revision?: string;
  readonly from?: Month;
  readonly to?: Month;
}

/** Closes, newest first. */
export async function closesOf(store: Store, which: WhichCloses): Promise<Close[]> {
  return select<Close>(
    store,
    `SELECT account_id AS account, month, revision, previous, toString(c.closed_at) AS closed_at,
            toFloat64(c.rows) AS rows, unconfirmed, toFloat64(c.open_rejects) AS open_rejects
     FROM closes AS c ${whereOf(which)} ORDER BY c.closed_at DESC, account, month`,
    { ...which },
  );
}

/**
 * What the last of them said of itself; undefined where there is none.
 * @param which with the account, where it is known, nothing is read of others
 */
export async function manifestText(store: Store, which: WhichCloses): Promise<string | undefined> {
  const query = `SELECT manifest FROM closes AS c ${whereOf(which)} ORDER BY c.closed_at DESC LIMIT 1`;
  return (await select<{ manifest: string }>(store, query, { ...which }))[0]?.manifest;
}

function whereOf({ account, revision, from, to }: WhichCloses): string {
  const conditions = [
    ...(account === undefined ? [] : ['account_id = {account:String}']),
    ...(revision === undefined ? [] : ['c.revision = {revision:String}']),
    ...(from === undefined ? [] : ['month >= {from:UInt32}']),
    ...(to === undefined ? [] : ['month <= {to:UInt32}']),
  ];
  return conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
}
