import { combinations } from '../../../catalog/breakdowns.ts';
import type { Catalog, Family } from '../../../catalog/catalog.ts';
import { reportFormats } from '../../report/formats.ts';
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
import { formatSchemaName } from './reports.ts';

export const exportTag = 'exports';
export const basicLogin = 'login_token_as_password';

const security: Operation['security'] = [{ login_token: [] }, { [basicLogin]: [] }];
const problems = [
  ...reportProblems.filter((code) => !['not_acceptable', 'body_too_large'].includes(code)),
  'not_found',
  'range_not_satisfiable',
] as const;

/** Every report as a file by GET. The sixteen are told in two paths for each family. */
export function exportPaths(catalog: Catalog): Record<string, PathItem> {
  return Object.fromEntries(
    Object.entries(catalog.families).flatMap(([name, family]): [string, PathItem][] => {
      const breakdown: Parameter = {
        name: 'breakdown',
        in: 'path',
        required: true,
        description: 'As in the path of the endpoint.',
        schema: { type: 'string', enum: breakdownNames(family) },
      };
      return [
        [`/v1/export/${name}.{format}`, item(`export_${name}`, `The report of ${name}`, [])],
        [
          `/v1/export/${name}/{breakdown}.{format}`,
          item(`export_${name}_breakdown`, `A breakdown of ${name}`, [breakdown]),
        ],
        [`/v1/links/${name}.{format}`, { post: makeLink(name, []) }],
        [`/v1/links/${name}/{breakdown}.{format}`, { post: makeLink(`${name}_breakdown`, [breakdown]) }],
      ];
    }),
  );
}

function breakdownNames(family: Family): string[] {
  return combinations(family)
    .flatMap((dimensions) => [dimensions, [...dimensions, 'date']])
    .filter(({ length }) => length > 0)
    .map((parts) => parts.join('_'));
}

function item(operationId: string, what: string, parameters: readonly Parameter[]): PathItem {
  const headers = headerRefs([...exportHeaderNames]);
  const content = Object.fromEntries(
    exportFormats.map((format) => [
      reportFormats[format].mediaType,
      { schema: format === 'json' ? { type: 'object' } : schemaRef(formatSchemaName(format)) },
    ]),
  );
  const operation = (method: string, summary: string, description: string): Operation => ({
    operationId: `${method}_${operationId}`,
    tags: [exportTag],
    summary,
    description,
    security,
    parameters: [
      ...parameters,
      formatParameter,
      ...rangeParameters,
      ...(method === 'get' ? conditions : []),
      { $ref: '#/components/parameters/X-Request-Id' },
    ],
    responses: {
      200: { description: 'The report, complete.', headers, ...(method === 'get' && { content }) },
      ...(method === 'get' && {
        206: {
          description: 'The part that `Range` asks for.',
          headers: headerRefs(partHeaderNames),
          content,
        },
        304: { description: 'Nothing has changed; not counted as a request.', headers: headerRefs(['ETag']) },
      }),
      ...problemRefs(problems),
    },
  });
  return {
    get: operation(
      'get',
      `${what} as a file`,
      'The rows of the endpoint of the same name, for tools that know only GET. Parameters that nobody knows are refused. QUERY (RFC 10008) takes the body of the endpoint instead of parameters.',
    ),
    head: operation(
      'head',
      `${what} as a file: headers alone`,
      'Computes nothing: `Content-Length` is there when the answer is in memory.',
    ),
  };
}

function makeLink(name: string, parameters: readonly Parameter[]): Operation {
  return {
    operationId: `link_${name}`,
    tags: [exportTag],
    summary: 'A link to that file, for programs that cannot log in',
    description:
      'Takes the body of the endpoint and `expires`, a day or a time within 366 days, in a week unless given. Whoever has the link has this report, and its requests count as those of the account, until then or until the token that made it ends.',
    security,
    parameters: [...parameters, formatParameter, { $ref: '#/components/parameters/X-Request-Id' }],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            allOf: [
              schemaRef('ReportRequest'),
              { type: 'object', properties: { expires: { type: 'string', examples: ['2026-12-01'] } } },
            ],
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

const formatParameter: Parameter = {
  name: 'format',
  in: 'path',
  required: true,
  description: 'What the file is.',
  schema: { type: 'string', enum: exportFormats },
};

const day: JsonSchema = { type: 'string', format: 'date' };
const rangeParameters: readonly Parameter[] = [
  {
    name: 'start_time',
    in: 'query',
    required: true,
    description: 'First day of the range.',
    schema: { ...day, examples: [exampleRequest.start_time] },
  },
  {
    name: 'end_time',
    in: 'query',
    required: true,
    description: 'Last day of the range, included.',
    schema: { ...day, examples: [exampleRequest.end_time] },
  },
];

const conditions: readonly Parameter[] = [
  {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of an earlier answer: 304 if it would be the same.',
    schema: { type: 'string' },
  },
  {
    name: 'Range',
    in: 'header',
    description: 'A part of an answer that is in memory (`Accept-Ranges`), not of JSON; else ignored.',
    schema: { type: 'string', examples: ['bytes=0-65535'] },
  },
];

const exportHeaderNames = [
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'Last-Modified',
  'Cache-Status',
  'Vary',
  'Content-Encoding',
  'Content-Disposition',
  'ETag',
  'Accept-Ranges',
] as const;
const partHeaderNames = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy', 'ETag', 'Content-Range'];
