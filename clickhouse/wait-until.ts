import { setTimeout as delay } from 'node:timers/promises';

export interface WaitUntilOptions {
  readonly pollMs: number;
  /** Called once, when the first check finds that there is something to wait for. */
  readonly onWait?: (() => void) | undefined;
  /** Ends the waiting with an AbortError; `AbortSignal.timeout()` limits it. */
  readonly signal?: AbortSignal | undefined;
}

/** Repeats a check until it finds a value, and resolves to that. @throws what the check throws */
export async function waitUntil<T>(
  check: () => Promise<T | undefined> | T | undefined,
  { pollMs, onWait, signal }: WaitUntilOptions,
): Promise<T> {
  for (let waited = false; ; waited = true) {
    const found = await check();
    if (found !== undefined) return found;
    if (!waited) onWait?.();
    await delay(pollMs, undefined, { signal });
  }
}
