import { formats } from '../../ingest/formats/formats.ts';
import { runningVersion } from '../config/version.ts';
import { challenge } from '../http/access/authentication.ts';
import type { OpenApiDocument, ResponseObject } from '../http/openapi/model.ts';
import { headerRefs } from '../http/openapi/operation.ts';
import { schemaOf } from '../http/openapi/schemas.ts';
import {
  type ProblemCode,
  problemExample,
  problemSchema,
  receiveProblems,
  statusOf,
} from '../http/request/problems.ts';
import { operationPaths, operationProblems, operationsTag } from './operation-paths.ts';
import { receivedSchema } from './received.ts';

const own = Object.keys(receiveProblems) as ProblemCode[];
const codes: readonly ProblemCode[] = [...new Set<ProblemCode>([...own, ...operationProblems])];
/** Of messages and paths that are no operation. */
const others = ['not_found', 'malformed_message', 'headers_too_large', 'not_ready'] as const;

/** For a shell. */
const examples: Readonly<Record<string, { readonly example: string }>> = {
  'application/x-ndjson': {
    example:
      '{"event_time":"2026-10-31T12:00:00Z","advertiser_id":"acme","campaign_id":"autumn","impressions":1,"spend":"0.0021"}',
  },
};

const about =
  'The same bytes count once, like a file. After any answer but 400, 401, 409, 413, 415 and 422 send the same body again, as often as it takes: it counts once; after 500, somebody has to look into the log first. Operations are commands of adtally for the programs of an operator: answered when done, and done to their end if the caller leaves.';

/** The OpenAPI document of `adtally receive`. */
export function receiveDocument(): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'adtally: sending events, and operations',
      version: runningVersion().version,
      summary: 'Takes events of ads over HTTP, each body once, and operations of those who run adtally.',
      description: about,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The service that serves this document.' }],
    security: [{ bearer: [] }],
    tags: [
      { name: 'events', description: 'Events, as in a file of them.' },
      { name: operationsTag, description: 'What the commands of these names do.' },
    ],
    paths: {
      '/v1/events': {
        post: {
          operationId: 'sendEvents',
          tags: ['events'],
          summary: 'Send events',
          parameters: [
            {
              name: 'mapping',
              in: 'query',
              description: 'A mapping that the operator keeps in MAPPINGS_DIR, by its name.',
              schema: { type: 'string' },
            },
            {
              name: 'Idempotency-Key',
              in: 'header',
              description: 'Names the body beside its content. It never expires.',
              schema: { type: 'string', minLength: 1, maxLength: 200 },
            },
            {
              name: 'Channel',
              in: 'header',
              description:
                'The stream of records that the body is a piece of. What of it came before is cut off, however the stream was cut then. Of NDJSON, with a record on each line; not with `Idempotency-Key`.',
              schema: { type: 'string', minLength: 1, maxLength: 200 },
            },
            {
              name: 'Offset',
              in: 'header',
              description:
                'With `Channel`: the number of the first record of the body in its channel, from 0. A body without records tells where the channel goes on.',
              schema: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 },
            },
            {
              name: 'Content-Encoding',
              in: 'header',
              description: 'How the body is packed.',
              schema: { type: 'string', enum: ['identity', 'gzip', 'zstd', 'br'] },
            },
          ],
          requestBody: {
            required: true,
            description: 'At most 64 MiB when it is unpacked.',
            content: Object.fromEntries(
              Object.values(formats).flatMap(({ mediaTypes }) =>
                mediaTypes.map((each) => [each as string, { schema: {}, ...examples[each] }]),
              ),
            ),
          },
          responses: {
            200: {
              description: 'The ledger says that the body is loaded, and reports show it.',
              content: { 'application/json': { schema: { $ref: '#/components/schemas/Received' } } },
            },
            ...problemsOf(codes),
          },
        },
      },
      ...operationPaths(problemsOf),
    },
    components: {
      parameters: {},
      headers,
      responses: {},
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'For `/v1/events` a token of `adtally token create --for ingest NAME`, for operations one of `--for operator NAME`.',
        },
      },
      schemas: {
        Received: schemaOf(receivedSchema),
        Problem: schemaOf(problemSchema([...codes, ...others], when)),
      },
    },
  };
}

function problemsOf(codes: readonly ProblemCode[]): Record<string, ResponseObject> {
  const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
  const describe = (status: number) =>
    codes
      .filter((code) => statusOf(code) === status)
      .map((code) => `\`${code}\`: ${when[code] ?? `${problemExample(code).detail}.`}`)
      .join(' ');
  const statuses = [...new Set(codes.map(statusOf))].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      const own = headersByStatus[status];
      return [status, { description: describe(status), ...(own && { headers: headerRefs(own) }), content }];
    }),
  );
}

const headers = {
  'Retry-After': {
    description: 'Seconds until the same request may be sent again.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
    example: 5,
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 6750).',
    required: true,
    schema: { type: 'string' },
    example: challenge,
  },
  Allow: {
    description: 'The method that the path takes.',
    required: true,
    schema: { type: 'string' },
    example: 'POST',
  },
};

const headersByStatus: Readonly<Record<number, readonly (keyof typeof headers)[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

const when: Partial<Record<ProblemCode, string>> = {
  invalid_request: 'What was given is wrong, and nothing was changed; `field` says where.',
  unauthorized: 'The token is missing, unknown, expired, revoked, or for something else.',
  not_found: 'This service makes no links: `LINK_SECRET` is not set.',
  not_ready:
    'Only of `/readyz`: ClickHouse cannot be reached, or its tables are not up to date. Other paths answer `store_busy` then.',
  request_too_slow: 'The headers took longer than 10 s to arrive, or the whole request longer than 120 s.',
  body_too_large: 'The body has more than 64 MiB when it is unpacked.',
  unsupported_media_type:
    'No body of this `Content-Type` or `Content-Encoding` is read here; `Accept-Post` or `Accept-Encoding` lists the others.',
  rate_limited: 'Too many logins from this address failed. `Retry-After` says when to try again.',
};
