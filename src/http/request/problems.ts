import { STATUS_CODES } from 'node:http';
import type { Context } from 'hono';
import * as z from 'zod';
import { maxFileBytes } from '../../reconcile/limits.ts';

interface ProblemKind {
  readonly status: number;
  /** When the problem arises, for OpenAPI and docs/errors.md. */
  readonly when: string;
  /** The detail that a caller reads where no closer one is given. */
  readonly detail: string;
  /** A field that may be at fault. */
  readonly field?: string;
  /** An offset that the caller can go on with. */
  readonly committed?: number;
}

/** Every way a request can fail. Codes are stable: callers may act on them. */
export const problems = {
  invalid_request: {
    status: 400,
    when: 'The body is not a JSON object, `start_time` or `end_time` is missing or is not a date that exists, the range is inverted, an optional field has a value that it cannot have, or an unknown one looks like a mistyped one; or `changed_since` is missing or is not a time; or a parameter does not fit the file to compare, or leaves too many rows of it; or a link would have more than 8,000 characters. `field` is the field at fault, `filters.device` one within another.',
    detail: 'end_time must not be before start_time',
    field: 'end_time',
  },
  malformed_message: {
    status: 400,
    when: 'The message is not valid HTTP/1.1; also one whose method Node.js does not know, or whose target is no path, as in `OPTIONS *`. The connection is closed.',
    detail: 'the message is not valid HTTP/1.1, or its method or target cannot be read',
  },
  file_unreadable: {
    status: 400,
    when: 'The file to compare, of `/v1/{family}/reconcile`, cannot be read, its columns do not fit, or nothing of it can be compared: `detail` says what, and `field` names the parameter that would settle it, if there is one, such as `columns.event_time`. Single records that cannot be read are no reason; the answer tells them.',
    detail: 'the file: column event_time is missing',
  },
  unauthorized: {
    status: 401,
    when: 'The login token is missing, unknown, expired or revoked, or opens only the reports of the other family; or a link was changed or has ended; or the session of whoever signed in to the page has ended or does not open the account.',
    detail: 'a valid login token is required: authorization: Bearer <LOGIN_TOKEN>',
  },
  not_found: {
    status: 404,
    when: 'There is no such path; or, under `/v1/links/`, this service makes no links (`LINK_SECRET` is not set); or, under `/v1/closes/`, the account has no close of this name.',
    detail: 'there is no such path',
  },
  method_not_allowed: {
    status: 405,
    when: 'The path takes another method; `Allow` says which.',
    detail: 'this path takes POST',
  },
  not_acceptable: {
    status: 406,
    when: '`Accept` allows none of the media types of a report; or a count of the report is above 2^63 - 1, which Arrow and Parquet cannot hold: JSON, NDJSON and CSV can; or it has more rows than a sheet of Excel.',
    detail: 'a report comes as application/json, …',
  },
  request_too_slow: {
    status: 408,
    when: 'The headers took longer than 10 s to arrive, or the whole request longer than 30 s. The connection is closed.',
    detail: 'the request did not arrive in time',
  },
  month_not_closed: {
    status: 409,
    when: '`as_of` asks for a month as it was closed, and it is not closed, or not in this revision: `detail` names the first one. `/v1/{family}/adjustments` answers likewise.',
    detail: '2026-11 is not closed',
    field: 'as_of',
  },
  as_of_too_old: {
    status: 409,
    when: '`as_of` asks for a moment of which nobody can tell what a report had: older than what is kept, or one at which something was being loaded, replaced or renamed. `detail` says from when on it can be told.',
    detail: 'what reports said can be told from 2026-11-03T09:00:04.018273Z on',
    field: 'as_of',
  },
  body_too_large: {
    status: 413,
    when: `The body is too large: 512 KiB, or ${maxFileBytes >> 20} MiB of a file to compare.`,
    detail: 'the body is larger than 524288 bytes',
  },
  unsupported_media_type: {
    status: 415,
    when: 'The body is not declared as `content-type: application/json`, or, for a file to compare, as one of the types that it may have; or it is compressed.',
    detail: 'the request needs content-type: application/json',
  },
  http_version_too_old: {
    status: 426,
    when: 'The request came over HTTP/1.0, where an answer that breaks off would look complete. A reverse proxy must speak HTTP/1.1 to the service: `proxy_http_version 1.1` in nginx.',
    detail: 'a report needs HTTP/1.1; a proxy may have to be told to use it',
  },
  rate_limited: {
    status: 429,
    when: 'The request limit of the account is reached, or too many logins from this address failed. `Retry-After` says when to try again.',
    detail: 'more than 120 requests in 60 s; try again in 42 s',
  },
  too_many_reports: {
    status: 429,
    when: 'Too many reports or comparisons are running, or too many large bodies are held, of this account or of all. `Retry-After` says when to try again.',
    detail: 'too many reports are running; try again in 5 s',
  },
  headers_too_large: {
    status: 431,
    when: 'The headers are larger than 16 kB together. The connection is closed.',
    detail: 'the headers are larger than 16 kB together',
  },
  internal_error: {
    status: 500,
    when: 'The request could not be answered: a fault of the program or of its set-up. The operator finds the reason in the log by the request id.',
    detail: 'the request could not be answered; the request id finds the reason in the log',
  },
  explanation_differs: {
    status: 500,
    when: 'The loads that were found do not add up to the row: a load is just arriving or being taken back, or rollups and events differ, which `adtally verify` tells the operator. `Retry-After` says when to try again.',
    detail: 'the loads do not add up to the row now; try again in 5 s',
  },
  figures_damaged: {
    status: 500,
    when: 'A part of a table was damaged when ClickHouse started, and the answer could lack rows of it. `detail` names the month where it is known; otherwise any month may lack some. Only the operator can mend that: `adtally verify` tells how. Other months answer as always.',
    detail: 'the figures of 2026-09 are damaged: the operator has to run adtally verify',
  },
  report_timeout: {
    status: 500,
    when: 'The report took longer than the time limit.',
    detail: 'the report took too long; ask for a shorter range',
  },
  store_unavailable: {
    status: 500,
    when: 'ClickHouse cannot be reached, hangs or has too much to do. `Retry-After` says when to try again.',
    detail: 'the store cannot answer now; try again in 5 s',
  },
  not_ready: {
    status: 503,
    when: 'Only of `/readyz`: ClickHouse cannot be reached, or its tables are not up to date. Reports answer `store_unavailable` then.',
    detail: 'the store cannot be reached',
  },
} as const satisfies Record<string, ProblemKind>;

/** Those of `adtally receive` alone. */
export const receiveProblems = {
  events_unreadable: {
    status: 400,
    when: 'The body cannot be read as events, or as the names, confirmations or corrections that an operation takes: `detail` says why. Of events in several chunks what came before the fault may be loaded: `adtally loads` shows it. Or `Idempotency-Key` has more than 200 characters, or others than those of ASCII that can be printed.',
    detail: 'column campaing is not a field of an event',
  },
  mapping_unknown: {
    status: 400,
    when: '`MAPPINGS_DIR` of this service has no mapping of the name in `mapping`.',
    detail: 'there is no mapping exports',
  },
  offset_refused: {
    status: 409,
    when: 'Records are missing between what the `Channel` has and `Offset`. Or nobody knows whether records have arrived that were sent before: then so many as `records` says have to come in one body. `committed` is the offset to go on with; what of this body comes before that is loaded.',
    detail: 'the channel goes on at 4711: send the records from there on',
    committed: 4711,
  },
  idempotency_key_reused: {
    status: 422,
    when: 'Other bytes, or the same with another `Content-Type`, came under this `Idempotency-Key` before, from a token of the same name. Nothing of this body is loaded.',
    detail: 'other bytes came under this key before',
  },
  loaded_otherwise: {
    status: 422,
    when: 'The same bytes are loaded, but were read in another way (another mapping), and would count twice. Nothing of this body is loaded.',
    detail: 'already loaded as load 20261101…, but read in another way',
  },
  too_many_bodies: {
    status: 429,
    when: 'The service holds as many bodies as it can, of this sender or of all, or ClickHouse has too many parts to merge. `Retry-After` says when to send the body again.',
    detail: 'too many bodies are being loaded; send this one again in 1 s',
  },
  store_busy: {
    status: 503,
    when: 'ClickHouse cannot be reached, has too much to do or refuses to store what was sent (the log of the service says why), or the service stops. `Retry-After` says when to send the same again.',
    detail: 'the store cannot do this now; send the same again in 5 s',
  },
} as const satisfies Record<string, ProblemKind>;

const kinds = { ...problems, ...receiveProblems };

export type ProblemCode = keyof typeof kinds;

/** Of the service of reports. */
export const problemCodes = Object.keys(problems) as (keyof typeof problems)[];

export interface ProblemOptions {
  /** The field of the body, or the parameter, at fault. */
  readonly field?: string;
  /** The offset that a channel goes on with. */
  readonly committed?: number;
  /** So many records have to come from there on. */
  readonly records?: number;
  readonly headers?: Record<string, string>;
  /** For the log only. */
  readonly cause?: unknown;
}

/** A request that fails for a reason the caller may know; `message` becomes the problem's `detail`. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly options: ProblemOptions;

  constructor(code: ProblemCode, detail: string = kinds[code].detail, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.options = options;
  }
}

/** When a request may be sent again. */
export const retryIn = (seconds: number) => ({ headers: { 'Retry-After': String(seconds) } });

/** ClickHouse restarts, hangs or has too much to do. The contract knows no 503: `Retry-After` says that it passes. */
export function storeUnavailable(): Problem {
  return new Problem('store_unavailable', undefined, retryIn(5));
}

export const exampleRequestId = '5b0f6a0e-6a53-4d0b-9d5e-2f6f3a1c9a77';

/**
 * The answer to a request that failed, of a service that may answer with these codes.
 * @param when where they arise in another case than for the service of reports
 */
export function problemSchema(
  codes: readonly ProblemCode[],
  when: Partial<Record<ProblemCode, string>> = {},
) {
  return z
    .object({
      type: z.string().meta({ format: 'uri-reference', description: '`about:blank`: see `code`.' }),
      title: z.string().describe('The name of the status.'),
      status: z.number().meta({ type: 'integer', enum: [...new Set(codes.map(statusOf))] }),
      code: z.enum(codes).meta({
        description: 'The reason, stable: callers may act on it.',
        'x-enum-descriptions': codes.map((code) => when[code] ?? kinds[code].when),
      }),
      detail: z.string().describe('The reason, for people.'),
      field: z
        .string()
        .optional()
        .describe('The field of the body at fault, where there is one: `end_time`, `order_by.0.field`.'),
      ...(codes.includes('offset_refused') && {
        committed: z.int().min(0).optional().describe('The offset that the channel goes on with.'),
        records: z
          .int()
          .min(0)
          .optional()
          .describe('So many records at least have to come from there on, in one body.'),
      }),
      request_id: z.string().describe('The value of `X-Request-Id`.'),
    })
    .meta({ description: 'Problem details (RFC 9457).', examples: codes.map(problemExample) });
}

/** A problem of this code as a caller may see it. */
export function problemExample(code: ProblemCode) {
  const { detail, field, committed }: ProblemKind = kinds[code];
  return details(new Problem(code, detail, { field, committed }), exampleRequestId);
}

/** Problem details (RFC 9457) with the request id and nothing internal. */
export function problemBody(problem: Problem, requestId: string): string {
  return JSON.stringify(details(problem, requestId));
}

function details({ code, message, options }: Problem, request_id: string) {
  const status = statusOf(code);
  const { field, committed, records } = options;
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? '',
    status,
    code,
    detail: message,
    field,
    committed,
    records,
    request_id,
  };
}

export function statusOf(code: ProblemCode) {
  return kinds[code].status;
}

/** The answer to a failed request. */
export function problemResponse(c: Context, problem: Problem): Response {
  return c.body(problemBody(problem, c.get('requestId')), statusOf(problem.code), {
    ...problem.options.headers,
    'content-type': 'application/problem+json',
  });
}
