import { STATUS_CODES } from 'node:http';
import { type ProblemCode, problemStatus } from '../problems.ts';
import { headerRefs, type JsonSchema, type Reference, type ResponseObject, schemaRef } from './model.ts';

/** When a problem arises, and one as a caller may see it. */
const occasions: Readonly<Record<ProblemCode, { when: string; detail: string; field?: string }>> = {
  invalid_request: {
    when: 'The body is not a JSON object, `start_time` or `end_time` is missing or is not a date that exists, the range is inverted, or an optional field has a value that it cannot have; or `changed_since` is missing or is not a time. `field` is the field at fault, `filters.device` one within another.',
    detail: 'end_time must not be before start_time',
    field: 'end_time',
  },
  malformed_message: {
    when: 'The message is not valid HTTP/1.1. The connection is closed.',
    detail: 'the message is not valid HTTP/1.1',
  },
  unauthorized: {
    when: 'The login token is missing, unknown, expired or revoked, or opens only the reports of the other family.',
    detail: 'a valid login token is required: authorization: Bearer <LOGIN_TOKEN>',
  },
  not_found: {
    when: 'There is no such path; or, under `/v1/links/`, this service makes no links (`LINK_SECRET` is not set).',
    detail: 'there is no such path',
  },
  method_not_allowed: {
    when: 'The path takes another method; `Allow` says which.',
    detail: 'this endpoint takes POST',
  },
  not_acceptable: {
    when: '`Accept` allows none of the media types of a report; or a count of the report is above 2^63 - 1, which Arrow and Parquet cannot hold: JSON, NDJSON and CSV can.',
    detail: 'a report comes as application/json, …',
  },
  request_too_slow: {
    when: 'The headers took longer than 10 s to arrive, or the whole request longer than 30 s. The connection is closed.',
    detail: 'the request did not arrive in time',
  },
  precondition_failed: {
    when: '`If-Match` names tags. Those of exports are weak, which `If-Match` never takes: `If-None-Match` tells whether the data has changed.',
    detail: 'the tags of exports are weak, and If-Match needs a strong one',
  },
  body_too_large: { when: 'The body is too large.', detail: 'the body is larger than 16384 bytes' },
  unsupported_media_type: {
    when: 'The body is not declared as `content-type: application/json`, or it is compressed.',
    detail: 'the request needs content-type: application/json',
  },
  http_version_too_old: {
    when: 'The request came over HTTP/1.0, where an answer that breaks off would look complete. A reverse proxy must speak HTTP/1.1 to the service: `proxy_http_version 1.1` in nginx.',
    detail: 'a report needs HTTP/1.1; a proxy may have to be told to use it',
  },
  rate_limited: {
    when: 'The request limit of the account is reached, or too many logins from this address failed. `Retry-After` says when to try again.',
    detail: 'more than 120 requests in 60 s; try again in 42 s',
  },
  too_many_reports: {
    when: 'Too many reports are running, of this account or of all. `Retry-After` says when to try again.',
    detail: 'too many reports are running; try again in 5 s',
  },
  headers_too_large: {
    when: 'The headers are larger than 16 kB together. The connection is closed.',
    detail: 'the headers are larger than 16 kB together',
  },
  internal_error: {
    when: 'The report could not be produced. The operator finds the reason in the log by the request id.',
    detail: 'the report could not be produced; the request id finds the reason in the log',
  },
  report_timeout: {
    when: 'The report took longer than the time limit.',
    detail: 'the report took too long; ask for a shorter range',
  },
  store_unavailable: {
    when: 'ClickHouse cannot be reached, hangs or has too much to do. `Retry-After` says when to try again.',
    detail: 'the store cannot answer now; try again in 5 s',
  },
  method_unknown: {
    when: 'HTTP has no such method, or Node.js does not know it. The connection is closed.',
    detail: 'there is no such method',
  },
  not_ready: {
    when: 'Only of `/readyz`: ClickHouse cannot be reached, or its tables are not up to date. Reports answer `store_unavailable` then.',
    detail: 'the store cannot be reached',
  },
};

const codes = Object.keys(problemStatus) as ProblemCode[];

/** Every way an endpoint of the contract can fail: not by its path or method, and the others are of other paths. */
export const reportProblems = codes.filter(
  (code) => !['not_found', 'method_unknown', 'not_ready', 'precondition_failed'].includes(code),
);

const headersByStatus: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  426: ['Upgrade'],
  429: ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  500: ['Retry-After'],
};
// By then the token was accepted, so the answer shows the account's limit.
const underToken = [400, 406, 413, 415, 500];

export function problemSchema(): JsonSchema {
  return {
    type: 'object',
    description: 'Problem details (RFC 9457).',
    properties: {
      type: { type: 'string', format: 'uri-reference', description: '`about:blank`: see `code`.' },
      title: { type: 'string', description: 'The name of the status.' },
      status: { type: 'integer', enum: [...new Set(Object.values(problemStatus))] },
      code: {
        type: 'string',
        description: 'The reason, stable: callers may act on it.',
        enum: codes,
        'x-enum-descriptions': codes.map((code) => occasions[code].when),
      },
      detail: { type: 'string', description: 'The reason, for people.' },
      field: {
        type: 'string',
        description: 'The field of the body at fault, where there is one: `end_time`, `order_by.0.field`.',
      },
      request_id: { type: 'string', description: 'The value of `X-Request-Id`.' },
    },
    required: ['type', 'title', 'status', 'code', 'detail', 'request_id'],
    examples: codes.map(exampleOf),
  };
}

/** The responses of the codes, one per status, under the names they have among the components. */
export function problemResponses(among: readonly ProblemCode[]): Record<string, ResponseObject> {
  return Object.fromEntries(
    byStatus(among).map(([status, codes]) => [
      responseName(status),
      {
        description: codes.map((code) => occasions[code].when).join(' Or: '),
        headers: headerRefs([
          'X-Request-Id',
          ...(headersByStatus[status] ?? []),
          ...(underToken.includes(status) ? ['RateLimit', 'RateLimit-Policy'] : []),
        ]),
        content: {
          'application/problem+json': {
            schema: schemaRef('Problem'),
            examples: Object.fromEntries(
              codes.map((code) => [code, { summary: occasions[code].when, value: exampleOf(code) }]),
            ),
          },
        },
      },
    ]),
  );
}

/** The same responses as an operation refers to them. */
export function problemRefs(among: readonly ProblemCode[]): Record<string, Reference> {
  return Object.fromEntries(
    byStatus(among).map(([status]) => [status, { $ref: `#/components/responses/${responseName(status)}` }]),
  );
}

function byStatus(among: readonly ProblemCode[]): [number, ProblemCode[]][] {
  const statuses = [...new Set(among.map((code) => problemStatus[code]))];
  return statuses.map((status) => [status, among.filter((code) => problemStatus[code] === status)]);
}

function responseName(status: number): string {
  return (STATUS_CODES[status] ?? String(status)).replaceAll(' ', '');
}

function exampleOf(code: ProblemCode): object {
  const { detail, field } = occasions[code];
  const status = problemStatus[code];
  return {
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    code,
    detail,
    ...(field && { field }),
    request_id: '5b0f6a0e-6a53-4d0b-9d5e-2f6f3a1c9a77',
  };
}
