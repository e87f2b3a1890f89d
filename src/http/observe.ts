import type { MiddlewareHandler } from 'hono';
import pino, { type DestinationStream, type LevelWithSilent, type Logger } from 'pino';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Edge } from './edge.ts';
import type { RowCounts } from './row-counts.ts';

/** What the service measures about itself, in Prometheus' units: seconds and bytes. */
export class Metrics {
  readonly registry = new Registry();
  readonly requests = this.#add(
    new Counter({
      name: 'adtally_http_requests_total',
      help: 'Requests answered, by endpoint and status.',
      labelNames: ['endpoint', 'status'],
      registers: [],
    }),
  );
  readonly duration = this.#add(
    new Histogram({
      name: 'adtally_http_request_duration_seconds',
      help: 'From the request to the last byte of the answer, by endpoint and status.',
      labelNames: ['endpoint', 'status'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
      registers: [],
    }),
  );
  readonly bytes = this.#add(
    new Counter({
      name: 'adtally_http_response_bytes_total',
      help: 'Bytes sent, by endpoint.',
      labelNames: ['endpoint'],
      registers: [],
    }),
  );
  readonly limited = this.#add(
    new Counter({
      name: 'adtally_requests_limited_total',
      help: 'Requests answered 429, by problem code.',
      labelNames: ['code'],
      registers: [],
    }),
  );
  readonly broken = this.#add(
    new Counter({
      name: 'adtally_answers_broken_total',
      help: 'Answers that broke off after their first byte.',
      registers: [],
    }),
  );

  /** A value that is read when it is asked for. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void {
    this.#add(
      new Gauge({
        name,
        help,
        registers: [],
        async collect() {
          this.set(await read());
        },
      }),
    );
  }

  #add<M extends Counter | Histogram | Gauge>(metric: M): M {
    this.registry.registerMetric(metric);
    return metric;
  }
}

/** As what a request is logged whose caller left before the answer began. */
export const callerLeft = 499;

/** JSON lines. A line that tells of an earlier moment brings its `time`. */
export function openLog(level: LevelWithSilent, destination: DestinationStream): Logger {
  return pino({ level, timestamp: false, mixin: () => ({ time: Date.now() }) }, destination);
}

/**
 * Measures every request when its answer has ended, whichever way, and logs it; never a token. The line of a whole
 * report waits until its rows are known; all others are written at once.
 */
export function observe(log: Logger, metrics: Metrics, rowCounts: RowCounts): MiddlewareHandler<Edge> {
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
        account: c.get('account'),
        endpoint,
        status,
        bytes,
        complete,
        ...report,
        duration_ms: Math.round(seconds * 1000),
      };
      const rows =
        report && complete && log.isLevelEnabled('info') ? await rowCounts.of(report.query) : undefined;
      log.info({ ...line, rows }, 'answered');
    });
    await next();
  };
}
