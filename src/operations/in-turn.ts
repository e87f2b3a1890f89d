import { Load } from '../../ingest/ledger/load.ts';
import type { Context } from './operation.ts';

/** Waits for running loads to end; loads that start meanwhile wait for this work. The load history lists it as a rebuild. */
export async function inTurn<T>(
  { store, onWait, signal }: Pick<Context, 'store' | 'onWait' | 'signal'>,
  file: string,
  work: (load: Load) => Promise<T>,
): Promise<T> {
  const load = await Load.begin(store, { kind: 'rebuild', file }, new Date(), {
    ...(onWait && { onWait }),
    ...(signal && { signal }),
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
