import type { Reader } from '../../../clickhouse/reader.ts';

export interface RowCountOptions {
  /** How often the database is asked while somebody waits; servers write their query log every 1 to 7.5 s. */
  readonly askEveryMs?: number;
  /** How long one report is asked for. */
  readonly giveUpAfterMs?: number;
  /** Told when the database cannot be asked. */
  readonly onError: (error: unknown) => void;
}

interface Waiting {
  readonly since: number;
  readonly tell: (rows: number | undefined) => void;
}

/** What a log may hold back; above it lines go without rows rather than wait in memory. */
const maxWaiting = 10_000;

const rowsOf = `SELECT query_id AS id, toUInt32(result_rows) AS rows FROM system.query_log
  WHERE event_date >= toDate(now() - INTERVAL 1 MINUTE) AND event_time >= now() - INTERVAL 1 MINUTE
    AND type = 'QueryFinish' AND query_id IN splitByChar(',', {ids:String})`;

/**
 * How many rows reports had, for the log. The database writes a report and the service passes its bytes on unread, so
 * only the query log of the server knows, a moment after the answer has ended; one statement asks for all reports
 * since the last one.
 */
export class RowCounts {
  readonly #reader: Reader;
  readonly #options: Required<RowCountOptions>;
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(reader: Reader, options: RowCountOptions) {
    this.#reader = reader;
    this.#options = { askEveryMs: 1_000, giveUpAfterMs: 10_000, ...options };
  }

  /** Undefined for a report of which the database does not tell. */
  of(queryId: string): Promise<number | undefined> {
    if (this.#waiting.size >= maxWaiting) return Promise.resolve(undefined);
    return new Promise((tell) => {
      this.#waiting.set(queryId, { since: performance.now(), tell });
      this.#timer ??= setTimeout(() => void this.#ask(), this.#options.askEveryMs);
    });
  }

  /** Asks once more; what is not known then is not waited for. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#ask();
    this.#giveUp(0);
  }

  async #ask(): Promise<void> {
    const { askEveryMs, giveUpAfterMs, onError } = this.#options;
    try {
      const ids = [...this.#waiting.keys()].join(',');
      const statement = { query: rowsOf, params: { ids }, settings: { log_queries: 0 } };
      const found = ids === '' ? [] : await this.#reader.rows<{ id: string; rows: number }>(statement);
      for (const { id, rows } of found) this.#tell(id, rows);
      this.#giveUp(giveUpAfterMs);
    } catch (error) {
      onError(error);
      this.#giveUp(0);
    }
    this.#timer = this.#waiting.size > 0 ? setTimeout(() => void this.#ask(), askEveryMs) : undefined;
  }

  #giveUp(afterMs: number): void {
    for (const [id, { since }] of this.#waiting) {
      if (performance.now() - since >= afterMs) this.#tell(id, undefined);
    }
  }

  #tell(id: string, rows: number | undefined): void {
    this.#waiting.get(id)?.tell(rows);
    this.#waiting.delete(id);
  }
}
