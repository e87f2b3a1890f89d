import { readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { expect, test, vi } from 'vitest';
import { connect, select, stepsAside } from '../../clickhouse/client.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** The nice value and the capabilities of a thread, as Linux has them (proc(5)). */
function thread(id: number): { nice: number; maySetNice: boolean } {
  const [, afterName = ''] = readFileSync(`/proc/${id}/stat`, 'utf8').split(') ');
  const [, effective = '0'] = /^CapEff:\s*(\w+)$/m.exec(readFileSync(`/proc/${id}/status`, 'utf8')) ?? [];
  return {
    nice: Number(afterName.split(' ')[16]),
    maySetNice: (BigInt(`0x${effective}`) >> 23n) % 2n === 1n,
  };
}

test('threads of a statement that fills the cores let others go first, where ClickHouse may set that', async () => {
  const store = connect(db.address);
  const id = `steps-aside-${Date.now()}`;
  const slow = store.command({
    query: 'SELECT sleepEachRow(0.1) FROM numbers(300) SETTINGS max_block_size = 1',
    query_id: id,
    clickhouse_settings: stepsAside,
  });
  const killed = expect(slow).rejects.toThrow(/killed|cancelled|aborted/);
  try {
    await vi.waitFor(
      async () => {
        const threads = await select<{ id: number }>(
          db.store,
          'SELECT toUInt32(arrayJoin(thread_ids)) AS id FROM system.processes WHERE query_id = {id:String}',
          { id },
        );
        const stepAside = threads.map((row) => {
          const { nice, maySetNice } = thread(row.id);
          // Otherwise that of the engine (clickhouse/embedded/engine.ts).
          return nice === (maySetNice ? stepsAside.os_threads_nice_value_query : Math.max(5, getPriority()));
        });
        // Threads that have done their part and left stay in the list, and are as before.
        expect(stepAside).toContain(true);
      },
      { timeout: 20_000 },
    );
  } finally {
    await db.store.command({
      query: 'KILL QUERY WHERE query_id = {id:String}',
      query_params: { id },
    });
    await killed;
    await store.close();
  }
});
