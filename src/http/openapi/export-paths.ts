import { combinations, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { filterFields } from '../../report/fields.ts';
import { requestSchema } from '../../report/request.ts';
import { linkExpiry } from '../export/links.ts';
import { parameters as fieldParameters } from '../export/parameters.ts';
import { exportFormats } from '../export/paths.ts';
import type { ProblemCode } from '../request/problems.ts';
import { exampleParameters, exampleRequest } from './examples.ts';
import {
  allHeaders,
  answering,
  basicLogin,
  bearerLogin,
  exportTag,
  headerRefs,
  json,
  jsonProblems,
  limitHeaders,
  problemRefs,
  reportHeaders,
  reportProblems,
  requestId,
  rowsContent,
  taking,
} from './messages.ts';
import type { JsonSchema, Operation, Parameter, PathItem } from './model.ts';
import { jsonSchema, schemaRef } from './schemas.ts';

const security: Operation['security'] = [{ [bearerLogin]: [] }, { [basicLogin]: [] }];
const exportHeaders = [...reportHeaders, 'ETag'];
/** Nobody looks at a body. */
const ofBody: readonly ProblemCode[] = ['body_too_large', 'unsupported_media_type'];
const exportProblems = [...reportProblems.filter((code) => !ofBody.includes(code)), 'not_found'] as const;

/** Every report as a file by GET, and links to it. The sixteen are told in two paths for each family. */
export function exportPaths(catalog: Catalog, family: string): [string, PathItem][] {
  const format = inPath('format', 'What the file is.', exportFormats);
  const breakdown = inPath('breakdown', 'As in the path of the endpoint.', breakdownNames(catalog, family));
  return [
    { path: family, id: family, what: `The report of ${family}`, parameters: [format] },
    {
      path: `${family}/{breakdown}`,
      id: `${family}_breakdown`,
      what: `A breakdown of ${family}`,
      parameters: [breakdown, format],
    },
  ].flatMap(({ path, id, what, parameters }): [string, PathItem][] => [
    [`/v1/export/${path}.{format}`, exportItem(catalog, family, `export_${id}`, what, parameters)],
    [`/v1/links/${path}.{format}`, { post: linkOperation(`link_${id}`, parameters) }],
  ]);
}

const inPath = (name: string, description: string, names: readonly string[]): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string', enum: names },
});

function breakdownNames(catalog: Catalog, family: string): string[] {
  return combinations(familyOf(catalog, family))
    .flatMap((dimensions) => [dimensions, [...dimensions, 'date']])
    .filter(({ length }) => length > 0)
    .map((parts) => parts.join('_'));
}

function exportItem(
  catalog: Catalog,
  family: string,
  id: string,
  what: string,
  inPath: readonly Parameter[],
): PathItem {
  const ifNoneMatch: Parameter = {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of an earlier answer: 304 if it would be the same.',
    schema: { type: 'string' },
  };
  const parameters = [...inPath, ...bodyParameters(catalog, family), requestId, ifNoneMatch];
  const others = {
    304: {
      description: 'Nothing has changed; not counted as a request, except with `as_of`.',
      headers: headerRefs([...allHeaders, 'ETag', 'Vary']),
    },
    ...problemRefs(exportProblems),
  };
  return {
    get: {
      operationId: `get_${id}`,
      tags: [exportTag],
      summary: `${what} as a file`,
      description:
        'The rows of the endpoint of the same name, for tools that know only GET. Parameters that nobody knows are refused.',
      security,
      parameters,
      responses: {
        ...answering('The report, complete.', exportHeaders, {
          ...json({ type: 'object' }),
          ...rowsContent(),
        }),
        ...others,
      },
    },
    head: {
      operationId: `head_${id}`,
      tags: [exportTag],
      summary: `${what} as a file: headers alone`,
      description: 'Computes nothing.',
      security,
      parameters,
      responses: { ...answering('The report, complete.', exportHeaders), ...others },
    },
  };
}

/** The fields of the body as an address writes them. */
function bodyParameters(catalog: Catalog, family: string): Parameter[] {
  // Breakdowns by date take every field.
  const { properties = {}, required = [] } = jsonSchema(
    requestSchema(catalog, { family, dimensions: [], day: true }),
  );
  const examples = exampleParameters(familyOf(catalog, family).columns);
  const filters = filterFields(catalog, family).map(
    ({ id }): Parameter => ({
      name: `filters.${id}`,
      in: 'query',
      description: 'Counts only what has this value; several times: one of these values.',
      schema: { type: 'array', items: { type: 'string' } },
    }),
  );
  const single = Object.entries(fieldParameters).map(([id, { written }]): Parameter => {
    const { description = '', ...schema }: JsonSchema = properties[id] ?? {};
    return {
      name: id,
      in: 'query',
      ...(required.includes(id) && { required: true }),
      description: written ? `${description} ${written}` : description,
      schema: {
        ...(written ? { type: 'string' } : schema),
        ...(examples[id] && { examples: [examples[id]] }),
      },
    };
  });
  return [...filters, ...single];
}

/** How a link to an export is made. */
function linkOperation(operationId: string, parameters: readonly Parameter[]): Operation {
  const day = { type: 'string', format: 'date' };
  return {
    operationId,
    tags: [exportTag],
    summary: 'A link to that file, for programs that cannot log in',
    description:
      'Takes the body of the endpoint and `expires`, a day or a time within 366 days, in a week unless given. Whoever has the link has this report, and its requests count as those of the account, until then or until the token that made it ends.',
    security,
    parameters: [...parameters, requestId],
    requestBody: taking(
      json(
        {
          type: 'object',
          description: 'The body of the endpoint, and when the link expires.',
          properties: { start_time: day, end_time: day, ...jsonSchema(linkExpiry).properties },
          required: ['start_time', 'end_time'],
        },
        { ...exampleRequest, expires: '2026-12-01T00:00:00Z' },
      ),
    ),
    responses: {
      ...answering('Path and parameters of the link.', limitHeaders, json(schemaRef('Link'))),
      ...problemRefs([...jsonProblems, 'not_found']),
    },
  };
}
