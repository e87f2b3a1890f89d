import type { MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import type { Metrics } from '../../observe/metrics.ts';
import type { HttpEnv } from '../env.ts';
import type { ReportOutcomes } from '../report/report-outcomes.ts';

/** The status logged for a request whose caller left before the answer began. */
export const callerLeft = 499;

/**
 * Measures and logs every request when its answer has ended, in whatever way; never a token. The line of a complete
 * report waits until its row count is known; all others are written at once.
 */
export function observe(log: Logger, metrics: Metrics, outcomes: ReportOutcomes): MiddlewareHandler<HttpEnv> {
  return async function observeMiddleware(c, next) {
    const startedAt = performance.now();
    const { outgoing, incoming } = c.env;
    const before = incoming.socket.bytesWritten;
    outgoing.once('close', async () => {
      const seconds = (performance.now() - startedAt) / 1000;
      const status = outgoing.headersSent ? outgoing.statusCode : callerLeft;
      const endpoint = c.get('endpoint') ?? 'other';
      const bytes = incoming.socket.bytesWritten - before;
      metrics.requests.inc({ endpoint, status });
      metrics.duration.observe({ endpoint, status }, seconds);
      metrics.bytes.inc({ endpoint }, bytes);
      const report = c.get('report');
      const complete = outgoing.writableFinished;
      const line = {
        time: Date.now(),
        request: c.get('requestId'),
        address: c.get('address'),
        account: c.get('account'),
        token: c.get('token'),
        refused: c.get('refused'),
        endpoint,
        status,
        bytes,
        complete,
        ...report,
        duration_ms: Math.round(seconds * 1000),
      };
      log.info({ ...line, rows: report && complete ? await rowsOf(report) : undefined }, 'answered');
    });
    await next();
  };

  async function rowsOf({ query, rows }: Report): Promise<number | undefined> {
    if (rows.known === undefined && log.isLevelEnabled('info')) {
      rows.known = (await outcomes.of(query))?.rows ?? null;
    }
    return rows.known ?? undefined;
  }
}

type Report = NonNullable<HttpEnv['Variables']['report']>;
