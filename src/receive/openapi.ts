import { formats } from '../../ingest/formats/formats.ts';
import { runningVersion } from '../config/version.ts';
import {
  type ProblemCode,
  problemExample,
  problemSchema,
  receiveProblems,
  statusOf,
} from '../http/request/problems.ts';
import { receivedSchema } from './load-body.ts';
import { operationPaths, operationProblems, schemaOf } from './operation-paths.ts';

const shared = [
  'unauthorized',
  'request_too_slow',
  'body_too_large',
  'unsupported_media_type',
  'rate_limited',
] as const;
const codes: readonly ProblemCode[] = [...(Object.keys(receiveProblems) as ProblemCode[]), ...shared];
const allCodes = [...new Set([...codes, ...operationProblems])];

/** The OpenAPI document of `adtally receive`. */
export function receiveDocument() {
  return {
    openapi: '3.1.1',
    info: {
      title: 'adtally: sending events, and operations',
      version: runningVersion().version,
      description:
        'The same bytes count once, like a file. After any answer but 400, 401, 413, 415 and 422 send the same body again, as often as it takes: it counts once. Operations are commands of adtally for the programs of an operator: answered when done, and done to their end if the caller leaves.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ bearer: [] }],
    paths: {
      '/v1/events': {
        post: {
          operationId: 'sendEvents',
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
              name: 'Content-Encoding',
              in: 'header',
              schema: { type: 'string', enum: ['identity', 'gzip', 'zstd', 'br'] },
            },
          ],
          requestBody: {
            required: true,
            description: 'At most 64 MiB when it is unpacked.',
            content: Object.fromEntries(
              Object.values(formats).flatMap(({ mediaTypes }) =>
                mediaTypes.map((each) => [each as string, {}]),
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
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'For `/v1/events` a token of `adtally token create --for ingest NAME`, for operations one of `--for operator NAME`.',
        },
      },
      schemas: { Received: schemaOf(receivedSchema), Problem: schemaOf(problemSchema(allCodes)) },
    },
  };
}

function problemsOf(codes: readonly ProblemCode[]) {
  const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
  const describe = (status: number) =>
    codes
      .filter((code) => statusOf(code) === status)
      .map((code) => `\`${code}\`: ${said[code] ?? problemExample(code).detail}.`)
      .join(' ');
  const statuses = [...new Set(codes.map(statusOf))].sort();
  return Object.fromEntries(statuses.map((status) => [status, { description: describe(status), content }]));
}

const said: Partial<Record<ProblemCode, string>> = {
  invalid_request: 'what was given is wrong, and nothing was changed; `field` says where',
};
