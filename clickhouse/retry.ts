import { setTimeout as delay } from 'node:timers/promises';
import { ClickHouseError } from '@clickhouse/client';

export interface RetryOptions {
  /** How long a store that does not answer is waited for. */
  readonly giveUpAfterMs: number;
  /** Ends the waiting, with an AbortError. */
  readonly signal?: AbortSignal;
  /** Told at the first failure. */
  readonly onRetry?: (error: Error) => void;
}

/** A store that restarts is back within two minutes; longer is for a person to look at. */
const defaults: RetryOptions = { giveUpAfterMs: 120_000 };

/** Failures of a server that may pass: it is starting, overloaded, or cut off from its disk or coordination. */
const passing = new Set([
  'TOO_MANY_SIMULTANEOUS_QUERIES',
  'TOO_MANY_PARTS',
  'TABLE_IS_READ_ONLY',
  'KEEPER_EXCEPTION',
  'NETWORK_ERROR',
  'SOCKET_TIMEOUT',
  'ALL_CONNECTION_TRIES_FAILED',
  'ASYNC_LOAD_WAIT_FAILED',
]);

/**
 * Repeats work whose repetition changes nothing while the store cannot be reached or is busy, with growing
 * pauses.
 * @throws the last failure when it did not pass in time, and any other failure at once
 */
export async function retrying<T>(work: () => Promise<T>, options: RetryOptions = defaults): Promise<T> {
  const deadline = Date.now() + options.giveUpAfterMs;
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error) || !mayPass(error) || Date.now() + pauseMs > deadline) throw error;
      if (pauseMs === 100) options.onRetry?.(error);
      await delay(pauseMs, undefined, { signal: options.signal });
    }
  }
}

/** Whether a failure is one of the connection or of a busy server, which may pass by itself. */
export function mayPass(error: Error): boolean {
  if (error instanceof ClickHouseError) {
    // Another node of a cluster ended in the middle of an answer; a file that breaks off has this type, too.
    const peerEnded = error.type === 'ATTEMPT_TO_READ_AFTER_EOF' && / packet from /.test(error.message);
    return peerEnded || passing.has(error.type ?? '');
  }
  const code = 'code' in error ? String(error.code) : '';
  return (
    ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENOTFOUND', 'EAI_AGAIN'].includes(
      code,
    ) || /socket hang up|aborted|premature close/i.test(error.message)
  );
}
