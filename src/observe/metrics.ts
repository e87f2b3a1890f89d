import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** One of several values of a metric. Labels have few values: never an account, a file or a load. */
export interface Labelled {
  readonly labels: Record<string, string>;
  readonly value: number;
}

/** What the service measures about itself, in Prometheus' units: seconds and bytes. */
export class Metrics {
  #text: { readonly value: Promise<string>; readonly until: number } | undefined;
  readonly registry = new Registry();
  readonly requests = this.counter(
    'adtally_http_requests_total',
    'Requests answered, by endpoint and status.',
    'endpoint',
    'status',
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
  readonly bytes = this.counter('adtally_http_response_bytes_total', 'Bytes sent, by endpoint.', 'endpoint');
  readonly limited = this.counter(
    'adtally_requests_limited_total',
    'Requests answered 429, by problem code.',
    'code',
  );
  readonly refused = this.counter(
    'adtally_logins_refused_total',
    'Requests answered 401, by reason.',
    'reason',
  );
  readonly broken = this.counter(
    'adtally_answers_broken_total',
    'Answers that broke off after their first byte, by outcome.',
    'outcome',
  );
  readonly answers = this.counter(
    'adtally_answers_total',
    'Reports, by what memory had of them: hit, collapsed (waited for an equal one), stale, uri-miss, bypass.',
    'cache',
  );

  /** All of it as Prometheus reads it, written at most five times a second. */
  text(): Promise<string> {
    if (!this.#text || performance.now() > this.#text.until) {
      this.#text = { value: this.registry.metrics(), until: performance.now() + 200 };
    }
    return this.#text.value;
  }

  /** What is counted up, by labels. */
  counter(name: string, help: string, ...labelNames: string[]): Counter {
    return this.#add(new Counter({ name, help, labelNames, registers: [] }));
  }

  /** A value that is read when it is asked for. */
  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, [], () => [{ labels: {}, value: read() }]);
  }

  /** Values with labels that are read when they are asked for; those that are not there any more are not shown. */
  gauges(name: string, help: string, labelNames: readonly string[], read: () => readonly Labelled[]): void {
    this.#add(
      new Gauge({
        name,
        help,
        labelNames,
        registers: [],
        collect() {
          this.reset();
          for (const { labels, value } of read()) this.set(labels, value);
        },
      }),
    );
  }

  #add<M extends Counter | Histogram | Gauge>(metric: M): M {
    this.registry.registerMetric(metric);
    return metric;
  }
}
