import type { Reader } from '../../clickhouse/reader.ts';

/** How a statement ended. */
export interface Outcome {
  readonly rows: number;
  /** Why it failed, in ClickHouse's words; empty if it did not. */
  readonly failure: string;
}

export interface OutcomeOptions {
  /** How often ClickHouse is asked while a log line waits; servers write their query log every 1 to 7.5 s. */
  readonly askEveryMs?: number;
  /** How long a log line waits for it. */
  readonly giveUpAfterMs?: number;
  /** Called when ClickHouse cannot be asked. */
  readonly onError: (error: unknown) => void;
}

interface Waiting {
  readonly since: number;
  readonly outcome: Promise<Outcome | undefined>;
  readonly resolve: (outcome: Outcome | undefined) => void;
}

/** How many log lines may wait; beyond that they are written without it. */
const maxWaiting = 10_000;

const outcomesOf = `SELECT query_id AS id, toFloat64(result_rows) AS rows, exception AS failure FROM system.query_log
  WHERE event_date >= toDate(now() - INTERVAL 1 MINUTE) AND event_time >= now() - INTERVAL 1 MINUTE
    AND type IN ('QueryFinish', 'ExceptionWhileProcessing') AND query_id IN splitByChar(',', {ids:String})`;

/**
 * How reports ended, for the log: how many rows they had, or why they broke off. ClickHouse writes a
 * report and the service passes its bytes on unread, so only ClickHouse's query log knows, a moment after the answer has
 * ended. One statement asks for all reports since the last one.
 */
export class ReportOutcomes {
  readonly #reader: Reader;
  readonly #options: Required<OutcomeOptions>;
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(reader: Reader, options: OutcomeOptions) {
    this.#reader = reader;
    this.#options = { askEveryMs: 1_000, giveUpAfterMs: 10_000, ...options };
  }

  /** Undefined for a report that the query log does not show in time. */
  of(queryId: string): Promise<Outcome | undefined> {
    const other = this.#waiting.get(queryId);
    if (other) return other.outcome;
    if (this.#waiting.size >= maxWaiting) return Promise.resolve(undefined);
    let resolve: Waiting['resolve'] = () => {};
    const outcome = new Promise<Outcome | undefined>((settle) => {
      resolve = settle;
    });
    this.#waiting.set(queryId, { since: performance.now(), outcome, resolve });
    this.#timer ??= setTimeout(() => void this.#ask(), this.#options.askEveryMs);
    return outcome;
  }

  /** Asks once more; reports that the query log does not show by then stay without a row count. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#ask();
    this.#giveUp(0);
  }

  async #ask(): Promise<void> {
    const { askEveryMs, giveUpAfterMs, onError } = this.#options;
    try {
      const ids = [...this.#waiting.keys()].join(',');
      const statement = { query: outcomesOf, params: { ids }, settings: { log_queries: 0 } };
      const found = ids === '' ? [] : await this.#reader.rows<Outcome & { id: string }>(statement);
      for (const { id, rows, failure } of found) this.#resolve(id, { rows, failure });
      this.#giveUp(giveUpAfterMs);
    } catch (error) {
      onError(error);
      this.#giveUp(0);
    }
    this.#timer = this.#waiting.size > 0 ? setTimeout(() => void this.#ask(), askEveryMs) : undefined;
  }

  #giveUp(afterMs: number): void {
    for (const [id, { since }] of this.#waiting) {
      if (performance.now() - since >= afterMs) this.#resolve(id, undefined);
    }
  }

  #resolve(id: string, outcome: Outcome | undefined): void {
    this.#waiting.get(id)?.resolve(outcome);
    this.#waiting.delete(id);
  }
}
