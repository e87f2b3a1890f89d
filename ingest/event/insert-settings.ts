import type { ClickHouseSettings } from '@clickhouse/client';
import { commentOf } from '../ledger/loads-at-work.ts';

/**
 * One chunk is one block of one part for each partition, stored once under its token, in every rollup too.
 * Every deduplication setting is explicit, because their defaults changed in 24.7 and in 26.2.
 * @param load who it is for; others wait for the statement when it has ended
 */
export function insertSettings(token: string, load?: string): ClickHouseSettings {
  return {
    ...(load && { log_comment: commentOf([load]) }),
    insert_deduplication_token: token,
    insert_deduplicate: 1,
    deduplicate_insert: 'enable',
    deduplicate_insert_select: 'force_enable',
    deduplicate_blocks_in_dependent_materialized_views: 1,
    materialized_views_ignore_errors: 0,
    wait_end_of_query: 1,
    // The chunks in flight keep the cores busy; cutting each of them for several readers costs a fifth more.
    input_format_parallel_parsing: 0,
    // A chunk is read in small blocks that fit into caches, and must be stored as one: half a chunk is never
    // stored, and retries cut it the same way.
    max_insert_threads: '1',
    max_insert_block_size: '16384',
    min_insert_block_size_rows: '1000000000',
    min_insert_block_size_bytes: '0',
    max_partitions_per_insert_block: '0',
    // Rows of one chunk are grouped by the views already; merging them once more at insert costs time.
    optimize_on_insert: 0,
    parallel_view_processing: 1,
    ...judgeSettings,
  };
}

/**
 * How the statement of judge.ts is evaluated. Its layers stay apart: merged into one, ClickHouse evaluates the costly
 * branches of `if` and `AND` for every record (500,000 records of CSV: 4.1 s of CPU, not 0.9).
 */
export const judgeSettings: ClickHouseSettings = {
  // For cheap functions too: a fifth of the CPU of a chunk of NDJSON.
  short_circuit_function_evaluation: 'force_enable',
  query_plan_merge_expressions: 0,
  // It looks for chains of comparisons such as a < b AND b < 5 and hashes the statement over and over: 190 of the
  // 380 ms of CPU that a chunk of one record took.
  optimize_and_compare_chain: 0,
  // The optimizer looks for long chains of LIKE and match: 5 ms. Only an expression of a mapping can have one.
  optimize_or_like_chain: 0,
  // A date that an expression of a mapping reads is the same on every server.
  session_timezone: 'UTC',
  // Half a surrogate pair in an escape makes the record unreadable, and nothing else.
  input_format_json_throw_on_bad_escape_sequence: 0,
  // What is shown of a value is as the file has it: 09/01/2026.
  output_format_json_escape_forward_slashes: 0,
};
