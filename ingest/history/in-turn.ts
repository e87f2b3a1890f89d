import type { Store } from '../../clickhouse/client.ts';
import { Load, type WaitOptions } from '../ledger/load.ts';

/** Waits for running loads to end; loads that start meanwhile wait for this work. The load history lists it as a rebuild. */
export async function inTurn<T>(
  store: Store,
  file: string,
  now: Date,
  options: WaitOptions,
  work: (load: Load) => Promise<T>,
): Promise<T> {
  const load = await Load.begin(store, { kind: 'rebuild', file }, now, options);
  try {
    const result = await work(load);
    await load.finish();
    return result;
  } catch (error) {
    await load.fail(error);
    throw error;
  }
}
