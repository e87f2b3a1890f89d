import { type Store, select } from '../../clickhouse/client.ts';
import { insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';

/** An account that has a limit of its own, or had one. */
export interface AccountLimit {
  readonly account: string;
  /** In a window; null: as many as an account has that nothing was set for. */
  readonly requests: number | null;
  readonly version: string;
}

/** Sets how many requests an account has in a window; null takes its own limit away. */
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
