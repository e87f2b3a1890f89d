import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { type ClickHouseClient, type ClickHouseSettings, createClient } from '@clickhouse/client';

/** Where a ClickHouse server answers HTTP, and the user to connect as. */
export interface Server {
  readonly url: string;
  readonly user: string;
  readonly password: string;
}

/** A database on a server. */
export interface Address extends Server {
  readonly database: string;
}

/** A client that knows its own address, from which the other nodes of a cluster can be reached. */
export type Store = ClickHouseClient & { readonly address: Address };

/**
 * What every statement on a cluster relies on; without Distributed tables these settings change nothing. An insert
 * has reached every shard when it returns, a missing shard is an error and never a shorter answer, subqueries see
 * all shards, and no shard is skipped unless a statement asks for it. All nodes read from the same replica of a
 * shard, the first that is up: the other replicas may not have the latest writes yet.
 */
const clusterSettings: ClickHouseSettings = {
  distributed_foreground_insert: 1,
  skip_unavailable_shards: 0,
  distributed_product_mode: 'global',
  // Otherwise a shard would keep the rows it selects from a Distributed table, whichever shard they belong to.
  parallel_distributed_insert_select: '0',
  optimize_skip_unused_shards: 0,
  load_balancing: 'in_order',
  prefer_localhost_replica: 0,
};

/** Of every statement, because a profile of the server may have them otherwise; comments say what would happen then. */
export const againstProfiles = {
  // An empty one takes back what the compatibility of a profile has set, and nothing that a statement sets.
  compatibility: '',
  // An insert would return before it is stored.
  async_insert: 0,
  // Expressions of mappings would fail.
  enable_analyzer: 1,
  // Answers would be cut off without a word: 60,000 rows became 4,000 by `result_overflow_mode`, and five by `limit`.
  limit: '0',
  offset: '0',
  result_overflow_mode: 'throw',
  read_overflow_mode: 'throw',
  read_overflow_mode_leaf: 'throw',
  timeout_overflow_mode: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  group_by_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  distinct_overflow_mode: 'throw',
  set_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  transfer_overflow_mode: 'throw',
  // Answers would have more rows, or be old.
  extremes: 0,
  use_query_cache: 0,
  // Rejected rows could not be replayed, and closes would have other names.
  format_csv_delimiter: ',',
  output_format_csv_crlf_end_of_line: 0,
  output_format_tsv_crlf_end_of_line: 0,
  // `verify`, `unload` and adjustments by load would fail, and unconfirmed days would not be counted.
  join_use_nulls: 0,
  // Answers could have other rows, or a name another meaning.
  enable_parallel_replicas: 0,
  join_default_strictness: 'ALL',
  prefer_column_name_to_alias: 0,
  aggregate_functions_null_for_empty: 0,
  empty_result_for_aggregation_by_empty_set: 0,
} as const satisfies ClickHouseSettings;

/**
 * For statements that go on without the shards that are away. A frozen server accepts connections and never answers: by
 * default each statement waits for it three times 10 s.
 */
export const impatient: ClickHouseSettings = {
  connections_with_failover_max_tries: '1',
  handshake_timeout_ms: 3_000,
};

/**
 * A server drops no table and no partition above 50 GB unless told to, and none that somebody's dictionary in another
 * database reads: a restore then stopped with half of the old database dropped. Here no drop is a mistake: months are
 * pruned because somebody asked for it, of a rollup that was rebuilt the old one has to go, and a restored table has the
 * name of the one before, so dictionaries read on.
 */
const dropsAreMeant: ClickHouseSettings = {
  max_table_size_to_drop: '0',
  max_partition_size_to_drop: '0',
  check_table_dependencies: 0,
};

/**
 * For large reports, which fill the cores: the operating system lets the threads of small ones go first. Only where
 * ClickHouse has CAP_SYS_NICE, as root has outside of a container; otherwise nothing changes. On two cores the 99th
 * percentile of a small report beside two large ones was 54 ms without and 28 ms with it.
 */
export const stepsAside = { os_threads_nice_value_query: 10 };

export interface ConnectOptions {
  readonly idleTimeoutMs?: number;
  /**
   * Leaves its statements out of `system.query_log`. What asks every second or two would keep ClickHouse writing and
   * merging that log: two fifths of the CPU of a service without callers (3.8 % of a core with it, 2.2 % without).
   */
  readonly unlogged?: boolean;
  /** Leaves out what is on shards that are down, instead of failing. For what says so. */
  readonly withoutMissingShards?: boolean;
}

/** Opens a client, which the caller closes. Nothing is sent before the first statement. */
export function connect(address: Address, options: ConnectOptions = {}): Store {
  const client = createClient({
    url: address.url,
    username: address.user,
    password: address.password,
    database: address.database,
    application: 'adtally',
    max_open_connections: 64,
    request_timeout: options.idleTimeoutMs ?? 3_600_000,
    compression: { request: false, response: false },
    // Lists of chunks go in the body: load balancers take an address of 8 or 16 KiB, and a thousand chunks are 73.
    use_multipart_params_auto: true,
    // Failures are thrown and reported by the caller; the client must not print them as well.
    log: { level: 127 },
    clickhouse_settings: {
      ...againstProfiles,
      ...clusterSettings,
      ...dropsAreMeant,
      ...(options.unlogged && { log_queries: 0 }),
      ...(options.withoutMissingShards && { ...impatient, skip_unavailable_shards: 1 }),
    },
  });
  const command = client.command.bind(client);
  client.command = async (params) => {
    if (!Object.values(params.query_params ?? {}).some(Array.isArray)) return command(params);
    // The client puts parameters into the body for `query` only.
    const answer = await client.query({ ...params, format: 'JSONEachRow' });
    await answer.text();
    return answer;
  };
  return Object.assign(client, { address });
}

/** Does work with what is open, and closes it. */
export async function closing<Open extends { close(): unknown }, Result>(
  open: Open,
  work: (open: Open) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/** The rows of a small result. Not for reports, whose output is formatted by ClickHouse and passed through. */
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

/** The row of a statement that has one. @throws where ClickHouse sends none */
export async function selectOne<Row>(...statement: Parameters<typeof select>): Promise<Row> {
  const [row] = await select<Row>(...statement);
  if (!row) throw new Error('ClickHouse sent no row');
  return row;
}

/** Now, by the clock of the store: `yyyy-mm-dd hh:mm:ss.ffffff`, UTC. @param digits of the fraction of the second */
export async function storeTime(store: Store, digits: 6 | 9 = 6): Promise<string> {
  const row = await selectOne<{ now: string }>(store, `SELECT toString(now64(${digits}, 'UTC')) AS now`);
  return row.now;
}

/** Data, and the statement that reads them. */
export interface DataInsert {
  /** Table and columns. */
  readonly into: string;
  /** What is stored of the data; absent: they are. */
  readonly select?: string;
  /** Format of the data. */
  readonly format: string;
  readonly data: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array>;
  readonly params?: Record<string, unknown>;
  readonly settings: ClickHouseSettings;
}

/**
 * Stores what a statement selects from data; resolves to the number of rows written once ClickHouse has them.
 *
 * The address has the beginning of the statement, and the body goes on with it before the data: whole in the address, a
 * statement of the loader (20 KiB) is refused by load balancers, which take 8 or 16 KiB.
 */
export async function insertData(store: Store, insert: DataInsert): Promise<number> {
  const { into, select = '', format, data, params, settings } = insert;
  const { stream, summary } = await store.exec({
    query: `INSERT INTO ${into}`,
    values: Readable.from(after(`${select} FORMAT ${format}\n`, data), { objectMode: false }),
    ...(params && { query_params: params }),
    clickhouse_settings: { ...settings, wait_end_of_query: 1 },
  });
  await finished(stream.resume());
  return Number(summary?.written_rows ?? 0);
}

async function* after(statement: string, data: DataInsert['data']): AsyncGenerator<Uint8Array | string> {
  yield statement;
  yield* data;
}
