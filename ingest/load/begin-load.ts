import type { Store } from '../../clickhouse/client.ts';
import type { OpenInput } from '../chunks/sendable-chunk.ts';
import { type Input, sizeOf } from '../input/input.ts';
import { Load, type LoadCounts, type WaitOptions } from '../ledger/load.ts';
import { loadFailure, Stopped } from '../ledger/load-error.ts';

interface BeginOptions extends WaitOptions {
  readonly store: Store;
  readonly input: Input;
  readonly dedupe?: boolean;
  readonly dryRun?: boolean;
  readonly now: () => Date;
  /** One that has begun already. */
  readonly load?: Load;
}

/**
 * Opens an input and begins its load, beside which none runs of what begins alike. One that cannot be opened is a load as
 * well, which has failed. Others may wait for their first bytes for ever, and are seen to run meanwhile; those that have a
 * size take the turn of their beginning at once.
 * @returns no load for a dry run
 */
export async function beginLoad(
  opening: () => Promise<OpenInput>,
  options: BeginOptions,
  counts: LoadCounts,
): Promise<{ load: Load | undefined; opened: OpenInput | undefined; failure: unknown }> {
  const { store, input, dedupe = false, dryRun, now, signal } = options;
  const { name: file } = input;
  const startedAt = now();
  const begin = async (lock = '') => {
    if (dryRun || options.load) return dryRun ? undefined : options.load;
    try {
      return await Load.begin(store, { kind: 'events', file, dedupe, lock, counts }, startedAt, options);
    } catch (error) {
      const failure = loadFailure(error, file, signal);
      throw failure instanceof Stopped ? failure : error;
    }
  };
  let load = sizeOf(input) === undefined ? await begin() : undefined;
  let opened: OpenInput | undefined;
  let failure: unknown;
  try {
    opened = await opening();
    if (load && !options.load && opened.begins) await load.takeLock(opened.begins, options);
  } catch (error) {
    failure = error;
  }
  try {
    load ??= await begin(opened?.begins);
  } catch (error) {
    await opened?.close();
    throw error;
  }
  return { load, opened, failure };
}
