import { type Endpoint, familyOf } from '../../breakdowns.ts';
import type { Catalog } from '../../catalog.ts';
import { groupingDimensions } from '../../report/columns.ts';
import { exampleRequest } from './examples.ts';
import { headerRefs, type JsonSchema, type Operation, type PathItem, schemaRef } from './model.ts';
import { problemRefs, reportProblems } from './problems.ts';
import { reportResponse } from './reports.ts';

export const serviceTag = 'service';

const listed = new Intl.ListFormat('en-GB');

/** The name of an endpoint wherever a name is needed that is no path: `campaigns_device_date`. */
export function operationName(path: string): string {
  return path.replace('/v1/', '').replace('/breakdowns', '').replaceAll('/', '_');
}

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
    operationId: operationName(path),
    tags: [breakdown.family],
    summary: aliasOf ? `${grouping} (alias)` : grouping,
    description: sentences.filter(Boolean).join(' '),
    ...(aliasOf && { 'x-alias-of': aliasOf }),
    parameters: [{ $ref: '#/components/parameters/X-Request-Id' }],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemaRef('ReportRequest'), example: exampleRequest } },
    },
    responses: {
      200: reportResponse(catalog, breakdown, operationName(aliasOf ?? path)),
      ...problemRefs(reportProblems),
    },
  };
}

/** What the service says of itself: no data of an account, so no login token. */
export function servicePaths(): Record<string, PathItem> {
  const health = ['application/json', schemaRef('Health')] as const;
  const otherMethod = problemRefs(['method_not_allowed']);
  return {
    '/healthz': { get: open('healthz', 'Whether the process answers', ...health) },
    '/readyz': {
      get: open(
        'readyz',
        'Whether the store can be reached and is migrated',
        ...health,
        problemRefs(['not_ready']),
      ),
    },
    '/metrics': { get: open('metrics', 'Measurements for Prometheus', 'text/plain', { type: 'string' }) },
    '/openapi.json': {
      get: open('openapi', 'This document, OpenAPI 3.1', 'application/json', { type: 'object' }, otherMethod),
    },
    '/docs': {
      get: open(
        'docs',
        'This document as a page that can try it',
        'text/html',
        { type: 'string' },
        otherMethod,
      ),
    },
  };
}

function open(
  operationId: string,
  summary: string,
  mediaType: string,
  schema: JsonSchema,
  problems: Operation['responses'] = {},
): Operation {
  const headers = headerRefs(['X-Request-Id']);
  const answer = { description: 'OK', headers, content: { [mediaType]: { schema } } };
  return {
    operationId,
    tags: [serviceTag],
    summary,
    description: `${summary}. Takes no login token.`,
    security: [],
    responses: { 200: answer, ...problems },
  };
}
