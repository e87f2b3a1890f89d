import { type Endpoint, endpointName, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { groupingDimensions } from '../../report/columns.ts';
import type { ProblemCode } from '../problems.ts';
import { exampleRequest } from './examples.ts';
import { headerRefs, type JsonSchema, type Operation, type PathItem, schemaRef } from './model.ts';
import { problemRefs, reportProblems } from './problems.ts';
import { reportResponse, requestSchemaName } from './reports.ts';

export const serviceTag = 'service';

const listed = new Intl.ListFormat('en-GB');

/** What an endpoint of the contract takes, returns and refuses. */
export function reportOperation(catalog: Catalog, { path, breakdown }: Endpoint): Operation {
  const aliasOf = catalog.aliases[path];
  const { entity } = familyOf(catalog, breakdown.family);
  const keys = [entity, ...breakdown.dimensions].map((key) => key.replaceAll('_', ' '));
  const grouping = `One row per ${listed.format([...keys, ...(breakdown.day ? ['day'] : [])])}`;
  const added = groupingDimensions(catalog, breakdown)
    .slice(1)
    .flatMap(({ columns }) => columns.map(({ id }) => `\`${id}\``));
  const sentences = [
    aliasOf ? `An alias: the same as \`${aliasOf}\`.` : `${grouping}.`,
    added.length ? `Adds ${listed.format(added)} to every row.` : '',
    breakdown.day ? '`start_time` and `end_time` of a row are the day that it covers.' : '',
  ];
  return {
    operationId: endpointName(path),
    tags: [breakdown.family],
    summary: aliasOf ? `${grouping} (alias)` : grouping,
    description: sentences.filter(Boolean).join(' '),
    ...(aliasOf && { 'x-alias-of': aliasOf }),
    parameters: [{ $ref: '#/components/parameters/X-Request-Id' }],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: schemaRef(requestSchemaName(endpointName(aliasOf ?? path))),
          example: exampleRequest,
        },
      },
    },
    responses: {
      200: reportResponse(catalog, breakdown, endpointName(aliasOf ?? path)),
      ...problemRefs(reportProblems),
    },
  };
}

/** What the service says of itself: no data of an account, so no login token. */
export function servicePaths(withOperator: boolean): Record<string, PathItem> {
  const health = ['application/json', schemaRef('Health')] as const;
  return {
    '/healthz': { get: open('healthz', 'Whether the process answers', ...health) },
    ...(withOperator && {
      '/readyz': {
        get: open('readyz', 'Whether ClickHouse can be reached and is migrated', ...health, ['not_ready']),
      },
      '/metrics': { get: open('metrics', 'Measurements for Prometheus', 'text/plain', { type: 'string' }) },
    }),
    '/openapi.json': {
      get: open('openapi', 'This document, OpenAPI 3.1', 'application/json', { type: 'object' }),
    },
    '/docs': {
      get: open('docs', 'This document as a page that can try it', 'text/html', { type: 'string' }),
    },
    '/app': {
      get: open('app', 'The reports as a page for people', 'text/html', { type: 'string' }),
    },
  };
}

function open(
  operationId: string,
  summary: string,
  mediaType: string,
  schema: JsonSchema,
  problems: readonly ProblemCode[] = [],
): Operation {
  const headers = headerRefs(['X-Request-Id']);
  const answer = { description: 'OK', headers, content: { [mediaType]: { schema } } };
  return {
    operationId,
    tags: [serviceTag],
    summary,
    description: `${summary}. Takes no login token.`,
    security: [],
    responses: { 200: answer, ...problemRefs(['method_not_allowed', ...problems]) },
  };
}
