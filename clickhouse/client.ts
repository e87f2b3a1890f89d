import { type ClickHouseClient, createClient } from '@clickhouse/client';

/** Where a ClickHouse server answers HTTP, and as whom to speak to it. */
export interface Address {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

export type Store = ClickHouseClient;

/** Opens a client; whoever opens it closes it. Nothing is sent before the first statement. */
export function connect(address: Address, options: { idleTimeoutMs?: number } = {}): Store {
  return createClient({
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
  });
}

/** Rows of a small statement. Never for reports: their rows are written by the database. */
export async function select<Row>(
  store: Store,
  query: string,
  params: Record<string, unknown> = {},
): Promise<Row[]> {
  const result = await store.query({ query, query_params: params, format: 'JSONEachRow' });
  return result.json<Row>();
}
