import { STATUS_CODES } from 'node:http';
import type { Context } from 'hono';

/** Every way a request can fail, with its status. Codes are stable: callers may act on them. */
export const problemStatus = {
  invalid_request: 400,
  unauthorized: 401,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  body_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  too_many_reports: 429,
  internal_error: 500,
  report_timeout: 500,
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

/** The answer to a failed request: problem details (RFC 9457) with the request id, and nothing of the inside. */
export function problemResponse(c: Context, problem: Problem): Response {
  const { code, message, options } = problem;
  const status = problemStatus[code];
  const body = {
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    code,
    detail: message,
    ...(options.field && { field: options.field }),
    request_id: c.get('requestId'),
  };
  return c.body(JSON.stringify(body), status, {
    ...options.headers,
    'content-type': 'application/problem+json',
  });
}
