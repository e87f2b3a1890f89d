import type { Logger } from 'pino';
import { isTransient, retrying } from '../../../clickhouse/retry.ts';

/**
 * Prepares a service. Where ClickHouse does not respond the service begins without being ready, and is prepared when
 * ClickHouse is there.
 * @throws for any other reason, such as a schema that does not fit: that needs a person
 */
export async function readyNowOrLater(
  prepare: () => Promise<void>,
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  try {
    await prepare();
  } catch (err) {
    if (!(err instanceof Error) || !isTransient(err)) throw err;
    log.warn({ err }, 'ClickHouse does not respond: not ready until it does');
    void retrying(prepare, { giveUpAfterMs: Number.POSITIVE_INFINITY, signal: stopping })
      .then(() => log.info('ClickHouse responds: ready'))
      .catch((error: unknown) => {
        if (!stopping.aborted) log.fatal({ err: error }, 'this service will never be ready');
      });
  }
}
