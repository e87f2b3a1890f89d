/** The service refused the request (RFC 9457). Act on `code`, show `detail`, quote `requestId`. */
export class AdtallyError extends Error {
  override readonly name = 'AdtallyError';
  readonly status: number;
  /** Stable; `unknown` when what answered was not adtally. */
  readonly code: string;
  readonly field: string | undefined;
  /** Of `offset_refused`: the offset that the channel goes on with. */
  readonly committed: number | undefined;
  /** Of `offset_refused`, where nobody knows whether a body has arrived: so many records have to come in one body. */
  readonly records: number | undefined;
  readonly requestId: string | undefined;
  /** Seconds to wait before another try, if the service said so. */
  readonly retryAfter: number | undefined;

  constructor(status: number, problem: Readonly<Record<string, unknown>>, retryAfter?: number) {
    super(typeof problem.detail === 'string' ? problem.detail : `HTTP status ${status}`);
    this.status = status;
    this.code = typeof problem.code === 'string' ? problem.code : 'unknown';
    this.field = typeof problem.field === 'string' ? problem.field : undefined;
    this.committed = typeof problem.committed === 'number' ? problem.committed : undefined;
    this.records = typeof problem.records === 'number' ? problem.records : undefined;
    this.requestId = typeof problem.request_id === 'string' ? problem.request_id : undefined;
    this.retryAfter = retryAfter;
  }
}

/** No answer began: the connection was refused, or broke before. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** The answer broke off. What came before is true, but it is not all. */
export class IncompleteAnswer extends Error {
  override readonly name = 'IncompleteAnswer';
}

/** The service took too long to begin, or sent nothing for too long. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}
