import type { Store } from '../../../clickhouse/client.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { commandLine, recorded } from '../../operations/audit.ts';
import { say } from '../command/command.ts';

/**
 * Waits for running loads to end; loads that start meanwhile wait for this work. The load history lists it as a
 * rebuild, and the audit log by its command.
 */
export function exclusively<T>(
  store: Store,
  operation: string,
  file: string,
  work: (load: Load) => Promise<T>,
): Promise<T> {
  return recorded(store, commandLine(), { operation, input: { what: file } }, async () => {
    return { result: await inTurn(store, file, work), outcome: {} };
  });
}

async function inTurn<T>(store: Store, file: string, work: (load: Load) => Promise<T>): Promise<T> {
  const description = { kind: 'rebuild', file } as const;
  const load = await Load.begin(store, description, new Date(), {
    onWait: (other) => say(`waiting for load ${other}`),
  });
  try {
    const result = await work(load);
    await load.finish();
    return result;
  } catch (error) {
    await load.fail(error);
    throw error;
  }
}
