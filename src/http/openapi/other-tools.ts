import { exportFormats } from '../export/paths.ts';
import { exampleRequest } from './examples.ts';
import {
  headerRefs,
  type JsonSchema,
  type Operation,
  type Parameter,
  type PathItem,
  schemaRef,
} from './model.ts';
import { problemRefs, reportProblems } from './problems.ts';

export const exportTag = 'exports';
export const basicLogin = 'login_token_as_password';
export const exportSecurity: Operation['security'] = [{ login_token: [] }, { [basicLogin]: [] }];

const day: JsonSchema = { type: 'string', format: 'date' };

export const formatParameter: Parameter = {
  name: 'format',
  in: 'path',
  required: true,
  description: 'What the file is.',
  schema: { type: 'string', enum: exportFormats },
};

/** How a link to an export is made. */
export function linkOperation(name: string, parameters: readonly Parameter[]): Operation {
  return {
    operationId: `link_${name}`,
    tags: [exportTag],
    summary: 'A link to that file, for programs that cannot log in',
    description:
      'Takes the body of the endpoint and `expires`, a day or a time within 366 days, in a week unless given. Whoever has the link has this report, and its requests count as those of the account, until then or until the token that made it ends.',
    security: exportSecurity,
    parameters: [...parameters, formatParameter, { $ref: '#/components/parameters/X-Request-Id' }],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            description: 'The body of the endpoint, and when the link expires.',
            properties: {
              start_time: day,
              end_time: day,
              expires: { type: 'string', examples: ['2026-12-01', '2026-12-01T00:00:00Z'] },
            },
            required: ['start_time', 'end_time'],
          },
          example: { ...exampleRequest, expires: '2026-12-01T00:00:00Z' },
        },
      },
    },
    responses: {
      200: {
        description: 'Path and parameters of the link.',
        headers: headerRefs(['X-Request-Id', 'RateLimit', 'RateLimit-Policy']),
        content: { 'application/json': { schema: schemaRef('Link') } },
      },
      ...problemRefs(reportProblems.filter((code) => !/acceptable|too_old|too_many/.test(code))),
    },
  };
}

/** What speaks to models; its messages are those of its own specification. */
export const mcpPath: Record<string, PathItem> = {
  '/mcp': {
    post: {
      operationId: 'mcp',
      tags: [exportTag],
      summary: 'Model Context Protocol, stateless and read-only: reports for assistants',
      description:
        'Streamable HTTP. The tools list the reports, ask for one (refused with the number of rows where there are more than 1,000), and tell changed days. A tool that asks the service counts as two requests.',
      security: [{ login_token: [] }],
      parameters: [{ $ref: '#/components/parameters/X-Request-Id' }],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { type: 'object', description: 'A JSON-RPC 2.0 message.' },
            example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
          },
        },
      },
      responses: {
        200: {
          description: 'The answer, JSON-RPC 2.0, also of a tool that failed.',
          headers: headerRefs(['X-Request-Id', 'RateLimit', 'RateLimit-Policy']),
          content: { 'application/json': { schema: { type: 'object' } } },
        },
        ...problemRefs(reportProblems.filter((code) => !/acceptable|too_old|too_many/.test(code))),
      },
    },
  },
};

export const linkSchema: JsonSchema = {
  type: 'object',
  properties: {
    result: {
      type: 'object',
      properties: {
        link: {
          type: 'string',
          format: 'uri-reference',
          description: 'To be put behind the address of the service.',
        },
        expires: { type: 'string', format: 'date-time' },
      },
      required: ['link', 'expires'],
      additionalProperties: false,
    },
  },
  required: ['result'],
  additionalProperties: false,
};
