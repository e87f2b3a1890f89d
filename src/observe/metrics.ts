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
  readonly refused = this.#add(
    new Counter({
      name: 'adtally_logins_refused_total',
      help: 'Requests answered 401, by reason.',
      labelNames: ['reason'],
      registers: [],
    }),
  );
  readonly broken = this.#add(
    new Counter({
      name: 'adtally_answers_broken_total',
      help: 'Answers that broke off after their first byte, by outcome.',
      labelNames: ['outcome'],
      registers: [],
    }),
  );

  readonly answers = this.#add(
    new Counter({
      name: 'adtally_answers_total',
      help: 'Reports, by what memory had of them: hit, collapsed (waited for an equal one), stale, uri-miss, bypass.',
      labelNames: ['cache'],
      registers: [],
    }),
  );

  /** All of it as Prometheus reads it, written at most five times a second. */
  text(): Promise<string> {
    if (!this.#text || performance.now() > this.#text.until) {
      this.#text = { value: this.registry.metrics(), until: performance.now() + 200 };
    }
    return this.#text.value;
  }

  /** What is counted up, by one label. */
  counter(name: string, help: string, label: string): Counter {
    return this.#add(new Counter({ name, help, labelNames: [label], registers: [] }));
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

  /** Labels that tell what this is, on a value that is always 1. */
  info(name: string, help: string, labels: Readonly<Record<string, string>>): void {
    this.#add(new Gauge({ name, help, labelNames: Object.keys(labels), registers: [] })).set(
      { ...labels },
      1,
    );
  }

  #add<M extends Counter | Histogram | Gauge>(metric: M): M {
    this.registry.registerMetric(metric);
    return metric;
  }
}
