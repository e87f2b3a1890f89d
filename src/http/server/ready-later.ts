import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isTransient, retrying } from '../../../clickhouse/retry.ts';

/**
 * Prepares a service. Where ClickHouse does not respond the service begins without being ready, and is prepared when
 * ClickHouse is there and its schema fits.
 * @param pauseMs between attempts where ClickHouse responds and something else is wrong: that needs a person
 * @throws at the start for any other reason, such as a schema that does not fit
 */
export async function readyNowOrLater(
  prepare: () => Promise<void>,
  log: Logger,
  stopping: AbortSignal,
  pauseMs = 30_000,
): Promise<void> {
  try {
    await prepare();
  } catch (err) {
    if (!(err instanceof Error) || !isTransient(err)) throw err;
    log.warn({ err }, 'ClickHouse does not respond: not ready until it does');
    void prepareLater(prepare, log, stopping, pauseMs);
  }
}

async function prepareLater(
  prepare: () => Promise<void>,
  log: Logger,
  signal: AbortSignal,
  pauseMs: number,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await retrying(prepare, { giveUpAfterMs: Number.POSITIVE_INFINITY, signal });
      log.info('ClickHouse responds: ready');
      return;
    } catch (err) {
      if (signal.aborted) return;
      log.error({ err }, 'ClickHouse responds, and this service is not ready: it tries again');
    }
    await delay(pauseMs, undefined, { signal }).catch(() => {});
  }
}
