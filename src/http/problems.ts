import { STATUS_CODES } from 'node:http';
import type { Context } from 'hono';

/** Every way a request can fail, with its status. Codes are stable: callers may act on them. */
export const problemStatus = {
  invalid_request: 400,
  malformed_message: 400,
  unauthorized: 401,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_too_slow: 408,
  precondition_failed: 412,
  body_too_large: 413,
  unsupported_media_type: 415,
  http_version_too_old: 426,
  rate_limited: 429,
  too_many_reports: 429,
  headers_too_large: 431,
  internal_error: 500,
  report_timeout: 500,
  store_unavailable: 500,
  method_unknown: 501,
  not_ready: 503,
} as const;

export type ProblemCode = keyof typeof problemStatus;

export interface ProblemOptions {
  /** The field of the body at fault. */
  readonly field?: string;
  readonly headers?: Record<string, string>;
  /** For the log only. */
  readonly cause?: unknown;
}

/** A request that fails for a reason the caller may know; `message` becomes the problem's `detail`. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly options: ProblemOptions;

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.options = options;
  }
}

/** ClickHouse restarts, hangs or has too much to do. The contract knows no 503: `Retry-After` says that it passes. */
export function storeUnavailable(): Problem {
  return new Problem('store_unavailable', 'the store cannot answer now; try again in 5 s', {
    headers: { 'Retry-After': '5' },
  });
}

/** Problem details (RFC 9457) with the request id and nothing internal. */
export function problemBody({ code, message, options }: Problem, requestId: string): string {
  const status = problemStatus[code];
  return JSON.stringify({
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    code,
    detail: message,
    ...(options.field && { field: options.field }),
    request_id: requestId,
  });
}

/** The answer to a failed request. */
export function problemResponse(c: Context, problem: Problem): Response {
  return c.body(problemBody(problem, c.get('requestId')), problemStatus[problem.code], {
    ...problem.options.headers,
    'content-type': 'application/problem+json',
  });
}
