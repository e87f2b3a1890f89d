import { combinations, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog, Family } from '../../../catalog/catalog.ts';
import { filterFields } from '../../report/fields.ts';
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
import { exportSecurity, exportTag, formatParameter, linkOperation } from './other-tools.ts';
import { problemRefs, reportProblems } from './problems.ts';
import { formatSchemaName, reportHeaderNames } from './reports.ts';

const problems = [
  ...reportProblems.filter((code) => code !== 'body_too_large'),
  'not_found',
  'precondition_failed',
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
        [`/v1/export/${name}.{format}`, item(catalog, name, `export_${name}`, `The report of ${name}`, [])],
        [
          `/v1/export/${name}/{breakdown}.{format}`,
          item(catalog, name, `export_${name}_breakdown`, `A breakdown of ${name}`, [breakdown]),
        ],
        [`/v1/links/${name}.{format}`, { post: linkOperation(name, []) }],
        [`/v1/links/${name}/{breakdown}.{format}`, { post: linkOperation(`${name}_breakdown`, [breakdown]) }],
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

function item(
  catalog: Catalog,
  family: string,
  operationId: string,
  what: string,
  parameters: readonly Parameter[],
): PathItem {
  const headers = headerRefs(exportHeaderNames);
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
    security: exportSecurity,
    parameters: [
      ...parameters,
      formatParameter,
      ...rangeParameters,
      ...optionParameters(catalog, family),
      ...(method === 'get' ? conditions : []),
      { $ref: '#/components/parameters/X-Request-Id' },
    ],
    responses: {
      200: { description: 'The report, complete.', headers, ...(method === 'get' && { content }) },
      ...(method === 'get' && {
        304: { description: 'Nothing has changed; not counted as a request.', headers: headerRefs(['ETag']) },
      }),
      ...problemRefs(problems),
    },
  });
  return {
    get: operation(
      'get',
      `${what} as a file`,
      'The rows of the endpoint of the same name, for tools that know only GET. Parameters that nobody knows are refused.',
    ),
    head: operation('head', `${what} as a file: headers alone`, 'Computes nothing.'),
  };
}

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

/** The optional fields of the body, as an address writes them. */
function optionParameters(catalog: Catalog, family: string): Parameter[] {
  const query = (name: string, description: string, schema: JsonSchema): Parameter => ({
    name,
    in: 'query',
    description,
    schema,
  });
  const text = (example: string): JsonSchema => ({ type: 'string', examples: [example] });
  const { columns } = familyOf(catalog, family);
  const [metric = ''] = columns.slice(-1);
  return [
    ...filterFields(catalog, family).map(({ id }) =>
      query(`filters.${id}`, 'Counts only what has this value; several times: one of these values.', {
        type: 'array',
        items: { type: 'string' },
      }),
    ),
    query('metrics', 'The figures that rows have, in this order, with commas.', text(columns.join(','))),
    query('order_by', 'What orders the rows, with commas; a minus is for descending.', text(`-${metric}`)),
    query('limit', 'Most rows that come.', { type: 'integer', minimum: 1 }),
    query('totals', 'The figures of all rows together, in the envelope or in `Adtally-Totals`.', {
      type: 'boolean',
    }),
    query('time_grain', 'Breakdowns by date only: what a row covers.', {
      type: 'string',
      enum: ['day', 'week', 'month'],
    }),
    query(
      'changed_since',
      'Breakdowns by date only: the rows of the days that changed after this time.',
      text('2026-10-02T08:00:00Z'),
    ),
    query('compare_to', '`previous_period`, `previous_year`, or two dates.', text('2026-09-01/2026-09-30')),
  ];
}

const conditions: readonly Parameter[] = [
  {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of an earlier answer: 304 if it would be the same.',
    schema: { type: 'string' },
  },
];

const exportHeaderNames = [...reportHeaderNames, 'ETag'];
