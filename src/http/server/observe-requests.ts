import type { MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import type { Metrics } from '../../observe/metrics.ts';
import type { ReportOutcomes } from '../../observe/report-outcomes.ts';
import type { Traces } from '../../observe/traces.ts';
import type { HttpEnv } from '../request/env.ts';

/** The status logged for a request whose caller left before the answer began. */
export const callerLeft = 499;

/**
 * Measures and logs every request when its answer has ended, whole or not; a token is never logged. The line of a
 * complete report waits until its row count is known; all other lines are written at once. With traces each request is a
 * span, and its statements carry the id of the span to ClickHouse.
 */
export function observe(
  log: Logger,
  metrics: Metrics,
  outcomes: ReportOutcomes | undefined,
  traces?: Traces,
): MiddlewareHandler<HttpEnv> {
  return function observeMiddleware(c, next) {
    const startedAt = performance.now();
    const { outgoing, incoming } = c.env;
    const before = incoming.socket.bytesWritten;
    const span = traces?.begin(c.req.method, 'SERVER', c.get('traceparent'));
    if (span) c.set('traceparent', span.traceparent);
    outgoing.once('close', async () => {
      const seconds = (performance.now() - startedAt) / 1000;
      const status = outgoing.headersSent ? outgoing.statusCode : callerLeft;
      const endpoint = c.get('endpoint') ?? 'other';
      const bytes = incoming.socket.bytesWritten - before;
      metrics.requests.inc({ endpoint, status });
      metrics.duration.observe({ endpoint, status }, seconds);
      metrics.bytes.inc({ endpoint }, bytes);
      const { requestId: request, address, account, token, person, refused, report, received } = c.var;
      const complete = outgoing.writableFinished;
      span?.end({
        name: `${c.req.method} ${endpoint}`,
        attributes: {
          'http.request.method': c.req.method,
          'http.route': endpoint,
          'http.response.status_code': status,
          'http.response.size': bytes,
          'client.address': address,
          'adtally.request': request,
          ...(report && {
            'adtally.account': account,
            'adtally.query_id': report.query,
            'adtally.cache': report.cache,
          }),
        },
        failed: status >= 500 || !complete,
      });
      const time = Date.now();
      const rows = report && complete ? await rowsOf(report) : undefined;
      const line = {
        time,
        ...{ request, address, account, token, person, refused, endpoint },
        status,
        bytes,
        complete,
        ...received,
        ...report,
        rows,
        duration_ms: Math.round(seconds * 1000),
      };
      log.info(line, 'answered');
    });
    return next();
  };

  async function rowsOf({ query, rows }: Report): Promise<number | undefined> {
    if (rows.known === undefined && log.isLevelEnabled('info')) {
      rows.known = (await outcomes?.of(query))?.rows ?? null;
    }
    return rows.known ?? undefined;
  }
}

type Report = NonNullable<HttpEnv['Variables']['report']>;
