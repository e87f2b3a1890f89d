import { pieces } from './answer.ts';
import { AdtallyError, ConnectionError, IncompleteAnswer, TimeoutError } from './errors.ts';
import type { ReportName, Rows } from './reports.ts';

export { type Received, Sender, type SenderOptions, type SendOptions } from './sender.ts';
export { AdtallyError, ConnectionError, IncompleteAnswer, type ReportName, type Rows, TimeoutError };

export interface AdtallyOptions {
  /** Of the service, such as `https://reports.example.com`. */
  readonly url: string;
  readonly token: string;
  /** Until an answer begins; 310,000 unless given. */
  readonly timeoutMs?: number;
  /** Between two pieces of an answer; 60,000 unless given. */
  readonly idleTimeoutMs?: number;
  /** How often a request that failed before its answer began is sent in all; 4 unless given. */
  readonly tries?: number;
  /** Instead of the global one. */
  readonly fetch?: typeof fetch;
  /**
   * Reads a row, or the whole answer of any call but `rows`. `JSON.parse` unless given, which makes doubles of numbers: exact
   * to 15 digits, counts up to 2^53.
   */
  readonly parse?: (text: string) => unknown;
}

/** What a report is asked for: a range of days, and what else the service knows (see its `/docs`). */
export interface ReportRequest {
  /** `yyyy-mm-dd`, as `end_time`, which is included. */
  readonly start_time: string;
  readonly end_time: string;
  /** Values to keep of each field: `{ device: ['mobile'] }`. */
  readonly filters?: Readonly<Record<string, readonly string[]>>;
  /** With it, rows have these figures alone. */
  readonly metrics?: readonly string[];
  readonly order_by?: readonly { readonly field: string; readonly direction?: 'asc' | 'desc' }[];
  readonly limit?: number;
  readonly totals?: boolean;
  /** With it, rows have the ids behind their names, too. */
  readonly ids?: boolean;
  /** Of reports by date. */
  readonly time_grain?: 'day' | 'week' | 'month';
  /** Of reports by date: the rows of days that changed after this time (RFC 3339), which `changes` lists. */
  readonly changed_since?: string;
  /** `closed`, or a revision: the rows as they were when their months were closed; or a time (RFC 3339): as a report had them then. */
  readonly as_of?: string;
  /** With it, rows have `…_compared` and `…_change` of each figure. */
  readonly compare_to?:
    | 'previous_period'
    | 'previous_weeks'
    | 'previous_month'
    | 'previous_year'
    | { readonly start_time: string; readonly end_time: string };
  readonly [field: string]: unknown;
}

/** Days of closed months. */
export interface AdjustmentsRequest
  extends Pick<ReportRequest, 'start_time' | 'end_time' | 'filters' | 'limit' | 'totals'> {
  /** A revision; the last close unless given. */
  readonly as_of?: string;
  /** Splits each row by `changed_at`, `change`, `load` and `reason`. */
  readonly by_load?: boolean;
}

export interface CallOptions {
  /** Aborting it ends the report on the service, too. */
  readonly signal?: AbortSignal;
}

export interface ReconcileOptions extends CallOptions {
  /** Of the file; `text/csv` unless given. */
  readonly contentType?: string;
  /** Those of `/docs`: `{ tolerance: '5', 'columns.spend': 'Cost' }`. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** The envelope of a report, as /openapi.json describes it. */
export interface Report<Row> {
  readonly last_update_time: string;
  readonly rows: readonly Row[];
  readonly column_metadata: readonly { readonly id: string; readonly type: string }[];
  readonly unconfirmed_revenue_dates: readonly string[];
  /** Of all rows, when asked for. */
  readonly totals?: Readonly<Record<string, number>>;
  /** With `limit`: how many rows there would be without it. */
  readonly row_count?: number;
  /** With `compare_to`: the days compared with. */
  readonly compare_to?: { readonly start_time: string; readonly end_time: string };
}

/** Which days changed. If `names_changed_at` is later than what was asked for, rows of every day may show other names. */
export interface Changes {
  readonly changed_until: string;
  readonly names_changed_at: string | null;
  readonly days: readonly {
    readonly day: string;
    readonly changed_at: string;
    readonly unconfirmed: boolean;
  }[];
}

/**
 * Asks one service for the reports of one account. Requests that are refused for the moment (429, 503), or that fail
 * before their answer begins, are sent again, when the service says or with growing pauses.
 */
export class Adtally {
  readonly #options: Required<Omit<AdtallyOptions, 'url'>> & { readonly url: string };

  constructor(options: AdtallyOptions) {
    this.#options = {
      timeoutMs: 310_000,
      idleTimeoutMs: 60_000,
      tries: 4,
      fetch: (...request) => fetch(...request),
      parse: JSON.parse,
      ...options,
      url: options.url.replace(/\/+$/, ''),
    };
  }

  /**
   * Every row, as it arrives; leaving the loop early ends the report.
   * @throws {AdtallyError} when the service refuses
   * @throws {IncompleteAnswer} after the last row that came, when the answer breaks off
   * @throws {ConnectionError} when no answer began, after the last try
   * @throws {TimeoutError}
   */
  async *rows<Name extends ReportName>(
    name: Name,
    request: ReportRequest,
    options: CallOptions = {},
  ): AsyncGenerator<Rows[Name], void, undefined> {
    const decoder = new TextDecoder('utf-8', { fatal: true });
    let rest = '';
    for await (const piece of this.#pieces(name, 'application/x-ndjson', request, options)) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield this.#options.parse(line) as Rows[Name];
    }
    // Every row ends with a line end, the last one, too.
    if (rest !== '') throw new IncompleteAnswer('the answer ends in the middle of a row');
  }

  /** The whole report with what else its envelope says. @throws as `rows` */
  async report<Name extends ReportName>(
    name: Name,
    request: ReportRequest,
    options: CallOptions = {},
  ): Promise<Report<Rows[Name]>> {
    return this.#whole(this.#pieces(name, 'application/json', request, options));
  }

  /**
   * What changed in a family after months were closed: today minus closed, a row for each day and all ids that differ.
   * @throws as `rows`; `month_not_closed` where a month of the range is not closed
   */
  async adjustments(
    family: 'campaigns' | 'ad_units',
    request: AdjustmentsRequest,
    options: CallOptions = {},
  ): Promise<Report<Readonly<Record<string, string | number>>>> {
    return this.#whole(this.#post(`/v1/${family}/adjustments`, 'application/json', request, options));
  }

  /** A report of the other side beside ours: totals, what explains the gap, and rows that differ; their amounts are text. @throws as `rows` */
  async reconcile(
    family: 'campaigns' | 'ad_units',
    file: Uint8Array,
    { contentType = 'text/csv', parameters = {}, ...options }: ReconcileOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const path = `/v1/${family}/reconcile?${new URLSearchParams(parameters)}`;
    return this.#whole(this.#send(path, 'application/json', contentType, new Uint8Array(file), options));
  }

  /** An Arrow IPC stream, for `tableFromIPC` of apache-arrow or flechette, or DuckDB. @throws as `rows` */
  async arrow(name: ReportName, request: ReportRequest, options: CallOptions = {}): Promise<Uint8Array> {
    const bytes = await whole(this.#pieces(name, 'application/vnd.apache.arrow.stream', request, options));
    // The mark at the end of a stream.
    const end = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    if (!end.every((byte, n) => bytes.at(n - end.length) === byte)) {
      throw new IncompleteAnswer('the Arrow stream has no end');
    }
    return bytes;
  }

  /**
   * The days whose rows or confirmation changed since a time (RFC 3339; every day unless given). Hand back
   * `changed_until` next time, and no change is missed. @throws as `rows`
   */
  async changes(
    family: 'campaigns' | 'ad_units',
    changedSince = '1970-01-01T00:00:00Z',
    options: CallOptions = {},
  ): Promise<Changes> {
    const body = { changed_since: changedSince };
    return this.#whole(this.#post(`/v1/${family}/changes`, 'application/json', body, options));
  }

  async #whole<Result>(asked: AsyncIterable<Uint8Array>): Promise<Result> {
    const text = new TextDecoder().decode(await whole(asked));
    if (!text.endsWith('}}')) throw new IncompleteAnswer('the answer has no end');
    return (this.#options.parse(text) as { result: Result }).result;
  }

  #pieces(name: ReportName, accept: string, request: ReportRequest, options: CallOptions) {
    const [family, breakdown] = name.split('/');
    const path = breakdown ? `/v1/${family}/breakdowns/${breakdown}` : `/v1/${family}`;
    return this.#post(path, accept, request, options);
  }

  #post(path: string, accept: string, body: object, options: CallOptions) {
    return this.#send(path, accept, 'application/json', JSON.stringify(body), options);
  }

  #send(
    path: string,
    accept: string,
    type: string,
    body: string | Uint8Array<ArrayBuffer>,
    { signal }: CallOptions,
  ) {
    const { url, token } = this.#options;
    const headers = { authorization: `Bearer ${token}`, 'content-type': type, accept };
    const init = { method: 'POST', headers, body };
    return pieces(`${url}${path}`, init, { ...this.#options, ...(signal && { signal }) });
  }
}

async function whole(asked: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const piece of asked) all.push(piece);
  const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
