import * as z from 'zod';
import { type Breakdown, combinations, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { filterFields } from '../../report/fields.ts';
import { rangeFields } from '../../report/option-schema.ts';
import { requestSchema } from '../../report/request.ts';
import { linkAnswer, linkExpiry } from '../export/links.ts';
import { parameters as fieldParameters } from '../export/parameters.ts';
import { exportFormats } from '../export/paths.ts';
import type { Operation, Parameter, PathItem } from './model.ts';
import {
  allHeaders,
  headerRefs,
  json,
  limitHeaders,
  ofExport,
  ofJson,
  operation,
  reportHeaders,
  rowsContent,
} from './operation.ts';
import { exampleOf, type NamedSchemas, schemaOf } from './schemas.ts';

const security: Operation['security'] = [{ login_token: [] }, { login_token_as_password: [] }];

/** Every report as a file by GET, and links to it. The sixteen are told in two paths for each family. */
export function exportPaths(catalog: Catalog, schemas: NamedSchemas): Record<string, PathItem> {
  const format = inPath('format', 'What the file is.', exportFormats);
  return Object.fromEntries(
    Object.keys(catalog.families).flatMap((family) => {
      const breakdown = inPath('breakdown', 'As in the path of the endpoint.', breakdowns(catalog, family));
      const asked = (day: boolean) => bodyParameters(catalog, { family, dimensions: [], day });
      return [
        ...pathsOf(schemas, family, family, `The report of ${family}`, [format], asked(false)),
        ...pathsOf(
          schemas,
          `${family}/{breakdown}`,
          `${family}_breakdown`,
          `A breakdown of ${family}`,
          [breakdown, format],
          // Breakdowns by date take every field.
          asked(true),
        ),
      ];
    }),
  );
}

const inPath = (name: string, description: string, names: readonly string[]): Parameter => ({
  ...{ name, in: 'path', required: true, description, schema: { type: 'string', enum: names } },
});

function breakdowns(catalog: Catalog, family: string): string[] {
  return combinations(familyOf(catalog, family))
    .flatMap((dimensions) => [dimensions, [...dimensions, 'date']])
    .filter(({ length }) => length > 0)
    .map((parts) => parts.join('_'));
}

function pathsOf(
  schemas: NamedSchemas,
  path: string,
  id: string,
  what: string,
  inPath: readonly Parameter[],
  asked: readonly Parameter[],
): [string, PathItem][] {
  const file = {
    tags: ['exports'],
    security,
    parameters: [...inPath, ...asked, ifNoneMatch],
    headers: [...reportHeaders, 'ETag'],
    others: {
      304: {
        description: 'Nothing has changed; not counted as a request, except with `as_of`.',
        headers: headerRefs([...allHeaders, 'ETag', 'Vary']),
      },
    },
    refusals: ofExport,
  };
  const description = 'The report, complete.';
  const get = operation({
    ...file,
    id: `get_export_${id}`,
    summary: `${what} as a file`,
    description:
      'The rows of the endpoint of the same name, for tools that know only GET. Parameters that nobody knows are refused.',
    gives: { description, content: { ...json({ schema: { type: 'object' } }), ...rowsContent() } },
  });
  const head = operation({
    ...file,
    id: `head_export_${id}`,
    summary: `${what} as a file: headers alone`,
    description: 'Computes nothing.',
    gives: { description },
  });
  const post = operation({
    id: `link_${id}`,
    tags: ['exports'],
    summary: 'A link to that file, for programs that cannot log in',
    description:
      'Takes the body of the endpoint and `expires`, a day or a time within 366 days, in a week unless given. Whoever has the link has this report, and its requests count as those of the account, until then or until the token that made it ends.',
    security,
    parameters: inPath,
    takes: json({
      schema: { ...schemaOf(linkBody), description: linkBody.description },
      example: exampleOf(linkBody),
    }),
    gives: {
      description: 'Path and parameters of the link.',
      content: json(schemas.body('Link', linkAnswer)),
    },
    headers: limitHeaders,
    refusals: [...ofJson, 404],
  });
  return [
    [`/v1/export/${path}.{format}`, { get, head }],
    [`/v1/links/${path}.{format}`, { post }],
  ];
}

const linkBody = z
  .object(rangeFields)
  .extend(linkExpiry.shape)
  .describe('The body of the endpoint, and when the link expires.');

const ifNoneMatch: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  description: 'The `ETag` of an earlier answer: 304 if it would be the same.',
  schema: { type: 'string' },
};

/** The fields of the body as an address writes them. */
function bodyParameters(catalog: Catalog, breakdown: Breakdown): Parameter[] {
  const { properties = {}, required = [] } = schemaOf(requestSchema(catalog, breakdown));
  const filters = filterFields(catalog, breakdown.family).map(
    ({ id }): Parameter => ({
      name: `filters.${id}`,
      in: 'query',
      description: 'Counts only what has this value; several times: one of these values.',
      schema: { type: 'array', items: { type: 'string' } },
    }),
  );
  const taken = Object.entries(fieldParameters).filter(([name]) => properties[name]);
  const single = taken.map(([name, { written, example }]): Parameter => {
    const { description = '', ...schema } = properties[name] ?? {};
    return {
      name,
      in: 'query',
      ...(required.includes(name) && { required: true }),
      description: written ? `${description} ${written}` : description,
      schema: {
        ...(written ? { type: 'string' } : schema),
        ...(example && { examples: [example] }),
      },
    };
  });
  return [...filters, ...single];
}
