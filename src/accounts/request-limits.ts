import { type Store, select } from '../../clickhouse/client.ts';
import { everyCopyOf, insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';
import { digestOf, type Versioned, versionAfter } from './versions.ts';

/** An account that has its own limit, or had one. */
export interface AccountLimit extends Versioned {
  readonly account: string;
  /** Per window; null: the limit of all accounts applies again. */
  readonly requests: number | null;
}

/**
 * Sets how many requests an account may send in a window; null removes its own limit.
 * @throws when ClickHouse has another limit afterwards
 */
export async function setRequestLimit(store: Store, account: string, requests: number | null): Promise<void> {
  const target = await insertTargetOnAllNodes(store, 'account_limits');
  const copies = await everyCopyOf(store, 'account_limits');
  const query_params = { account, requests };
  await store.command({
    query: `INSERT INTO ${target} (account_id, requests, version)
            SELECT {account:String}, {requests:Nullable(UInt32)}, ${versionAfter('max(l.version)')}
            FROM ${copies} AS l WHERE l.account_id = {account:String}`,
    query_params,
  });
  const [other] = await select(
    store,
    `SELECT 1 FROM ${copies} FINAL
     WHERE account_id = {account:String} AND requests IS DISTINCT FROM {requests:Nullable(UInt32)} LIMIT 1`,
    query_params,
  );
  if (other)
    throw new Error(`the limit of ${account} was not changed, or was changed again; repeat the command`);
}

/** All limits that were ever set, by account; with `since`, those of that version or a later one. */
export async function listLimits(
  store: Store,
  { since = '1970-01-01 00:00:00' }: { since?: string | undefined } = {},
): Promise<AccountLimit[]> {
  return select(
    store,
    `SELECT account_id AS account, requests, toString(l.version) AS version, ${digestOf('l.account_id, l.version')} AS digest
     FROM account_limits AS l FINAL
     WHERE l.version >= toDateTime64({since:String}, 6, 'UTC') ORDER BY account_id`,
    { since },
  );
}
