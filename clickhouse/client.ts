import { type ClickHouseClient, type ClickHouseSettings, createClient } from '@clickhouse/client';

/** Where a ClickHouse server answers HTTP, and as whom to speak to it. */
export interface Address {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** A client that knows where it is connected, so that the other nodes of a cluster can be reached from it. */
export type Store = ClickHouseClient & { readonly address: Address };

/**
 * What every statement on a cluster relies on; without Distributed tables it changes nothing. An insert has
 * arrived on every shard when it returns, a missing shard is an error and never a shorter answer, subqueries see
 * all shards, and no shard is left out unless a statement asks for it. All nodes ask the same replica of a shard,
 * the first that is up: what was written a moment ago need not have arrived at the others.
 */
const clusterSettings: ClickHouseSettings = {
  distributed_foreground_insert: 1,
  skip_unavailable_shards: 0,
  distributed_product_mode: 'global',
  // Else a shard would keep what it selects from another Distributed table, wherever the rows belong.
  parallel_distributed_insert_select: '0',
  optimize_skip_unused_shards: 0,
  load_balancing: 'in_order',
  prefer_localhost_replica: 0,
};

/** Opens a client; whoever opens it closes it. Nothing is sent before the first statement. */
export function connect(address: Address, options: { idleTimeoutMs?: number } = {}): Store {
  const client = createClient({
    url: address.url,
    username: address.user,
    password: address.password,
    database: address.database,
    application: 'adtally',
    max_open_connections: 64,
    request_timeout: options.idleTimeoutMs ?? 3_600_000,
    compression: { request: false, response: false },
    // Failures are thrown and reported by the caller; the client need not print them as well.
    log: { level: 127 },
    clickhouse_settings: clusterSettings,
  });
  return Object.assign(client, { address });
}

/** Rows of a small statement. Never for reports: their rows are written by the database. */
export async function select<Row>(
  store: Store,
  query: string,
  params: Record<string, unknown> = {},
  settings: ClickHouseSettings = {},
): Promise<Row[]> {
  const result = await store.query({
    query,
    query_params: params,
    format: 'JSONEachRow',
    clickhouse_settings: settings,
  });
  return result.json<Row>();
}
