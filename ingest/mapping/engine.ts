import { text } from 'node:stream/consumers';
import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import type { Store } from '../../clickhouse/client.ts';
import { isTransient, lacksMemory } from '../../clickhouse/retry.ts';

/** Expressions are tried as the loader evaluates them. */
export const checkSettings: ClickHouseSettings = {
  short_circuit_function_evaluation: 'enable',
  query_plan_merge_expressions: 0,
  session_timezone: 'UTC',
  // Text in one case and a number in another are two types to choose from, not one of both.
  use_variant_as_common_type: 0,
  max_execution_time: 60,
};

/** Whether ClickHouse says something of the statement, and not that it is busy, ends, was told to end it or lacks memory. */
export const isVerdict = (error: unknown): error is ClickHouseError =>
  error instanceof ClickHouseError &&
  !isTransient(error) &&
  error.type !== 'QUERY_WAS_CANCELLED' &&
  lacksMemory(error) !== 'server';

/** The lines of an EXPLAIN of this. It is sent without a FORMAT, which would be part of what is explained. */
export async function explain(store: Store, explained: string): Promise<string[]> {
  const query = `EXPLAIN ${explained}`;
  const { stream } = await store.exec({ query, clickhouse_settings: checkSettings });
  const lines = (await text(stream)).trimEnd().split('\n');
  return lines.map((line) => line.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c)));
}
