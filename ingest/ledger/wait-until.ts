import { setTimeout as delay } from 'node:timers/promises';

/** How a load waits for other loads. */
export interface WaitOptions {
  /** Called once, when a load has to wait, with the id of the other load. */
  readonly onWait?: (other: string) => void;
  /** Ends the waiting, with an AbortError. */
  readonly signal?: AbortSignal;
}

/**
 * Repeats a check until it names no load to wait for.
 * @throws an AbortError after the signal, and what the check throws
 */
export async function waitUntil(
  blockedBy: () => Promise<string | undefined>,
  { pollMs, onWait, signal }: WaitOptions & { readonly pollMs: number },
): Promise<void> {
  for (let waiting = false; ; waiting = true) {
    const other = await blockedBy();
    if (other === undefined) return;
    if (!waiting) onWait?.(other);
    await delay(pollMs, undefined, { signal });
  }
}
