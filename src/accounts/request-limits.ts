import { type Store, select } from '../../clickhouse/client.ts';
import { insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';

/** An account that has its own limit, or had one. */
export interface AccountLimit {
  readonly account: string;
  /** Per window; null: the limit of all accounts applies again. */
  readonly requests: number | null;
  readonly version: string;
}

/** Sets how many requests an account may send in a window; null removes its own limit. */
export async function setRequestLimit(store: Store, account: string, requests: number | null): Promise<void> {
  await store.command({
    query: `INSERT INTO ${await insertTargetOnAllNodes(store, 'account_limits')} (account_id, requests)
            SELECT {account:String}, {requests:Nullable(UInt32)}`,
    query_params: { account, requests },
  });
}

/** All limits that were ever set, by account; with `since`, those changed at or after it. */
export async function listLimits(
  store: Store,
  { since = '1970-01-01 00:00:00' }: { since?: string | undefined } = {},
): Promise<AccountLimit[]> {
  return select(
    store,
    `SELECT account_id AS account, requests, toString(l.version) AS version FROM account_limits AS l FINAL
     WHERE l.version >= toDateTime64({since:String}, 6, 'UTC') ORDER BY account_id`,
    { since },
  );
}
