import { setTimeout as delay } from 'node:timers/promises';

export interface PollOptions {
  readonly pollMs: number;
  /** Ends the waiting with an AbortError; `AbortSignal.timeout()` limits it. */
  readonly signal?: AbortSignal;
}

/** Repeats `find` until it finds a value, and resolves to that. @throws what `find` throws */
export async function pollFor<T>(
  find: () => Promise<T | undefined> | T | undefined,
  { pollMs, signal }: PollOptions,
): Promise<T> {
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    await delay(pollMs, undefined, { signal });
  }
}
