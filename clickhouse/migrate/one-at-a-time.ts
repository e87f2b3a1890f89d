import { ClickHouseError } from '@clickhouse/client';
import type { Store } from '../client.ts';
import { pollFor } from '../poll.ts';

/** Ends within a tenth of a second of its caller, also of one that was killed: then ClickHouse cannot send the next row. */
const heldStatement = `
SELECT if(number = 0, 0, sleepEachRow(0.1)) FROM numbers(1000000000)
SETTINGS max_block_size = 1, max_execution_time = 0 FORMAT TSV`;

/**
 * Does `work` while no other process does any under this `name` on the server; waits for its turn for as long as that
 * takes. ClickHouse runs one statement of an id at a time, so a statement that lasts as long as the work holds the turn.
 */
export async function oneAtATime<T>(store: Store, name: string, work: () => Promise<T>): Promise<T> {
  const held = await pollFor(() => beginHolding(store, name), { pollMs: 100 });
  try {
    return await work();
  } finally {
    held.destroy();
  }
}

/** Undefined while another process holds the name. */
async function beginHolding(store: Store, name: string) {
  try {
    const { stream } = await store.exec({ query: heldStatement, query_id: name });
    // A server that is gone also fails the work, which says so.
    return stream.on('error', () => {}).resume();
  } catch (error) {
    if (error instanceof ClickHouseError && error.type === 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING') return;
    throw error;
  }
}
