import type { Catalog } from '../../../catalog/catalog.ts';
import { runningVersion } from '../../config/version.ts';
import { problemCodes, problemSchema } from '../request/problems.ts';
import { exportPaths } from './export-paths.ts';
import { documentHeaders } from './headers.ts';
import type { Limits, OpenApiDocument } from './model.ts';
import { problemResponses, tags } from './operation.ts';
import { familyPaths, manifestOperation, mcpOperation, schedulePaths, servicePaths } from './other-paths.ts';
import { reportPaths } from './reports.ts';
import { NamedSchemas } from './schemas.ts';

const bearer = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'adt_…',
  description: 'A login token opens one account. Ask the operator of the service for one.',
};

const basic = {
  type: 'http',
  scheme: 'basic',
  description: 'For exports: any user name, the login token as the password.',
};

/**
 * The service in OpenAPI 3.1: every path of the contract with what it takes, returns and refuses, derived from
 * the catalog, the formats, the problems and the schema that validates the request.
 * @param withOperator whether `/readyz` and `/metrics` are at the same address
 * @param withSchedules whether accounts may have reports of theirs sent by mail
 */
export function openApiDocument(
  catalog: Catalog,
  limits: Limits,
  { withOperator = true, withSchedules = false } = {},
): OpenApiDocument {
  const schemas = new NamedSchemas();
  schemas.name('Problem', problemSchema(problemCodes));
  const paths = {
    ...reportPaths(catalog, schemas),
    ...familyPaths(catalog, schemas),
    ...exportPaths(catalog, schemas),
    '/v1/closes/{revision}/manifest': { get: manifestOperation },
    '/mcp': { post: mcpOperation },
    ...servicePaths(schemas, withOperator),
    ...(withSchedules && schedulePaths()),
  };
  return {
    openapi: '3.1.1',
    info: {
      title: 'adtally',
      version: runningVersion().version,
      summary:
        'Ad performance reports at the speed of the database: every row, exact, streamed from ClickHouse',
      description: introduction(limits),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The service that serves this document.' }],
    security: [{ login_token: [] }],
    tags: [
      ...Object.entries(catalog.families).map(([family, { owner, entity }]) => ({
        name: family,
        description: `Reports for ${owner.replace('_id', '')}s, per ${entity.replaceAll('_', ' ')}.`,
      })),
      ...Object.entries(tags)
        .filter(([tag]) => withSchedules || tag !== 'mails')
        .map(([tag, description]) => ({ name: tag, description })),
    ],
    paths,
    components: {
      securitySchemes: { login_token: bearer, login_token_as_password: basic },
      parameters: {
        'X-Request-Id': {
          name: 'X-Request-Id',
          in: 'header',
          description: 'Returned with the answer and logged with the request; generated if absent.',
          schema: { type: 'string', pattern: '^[\\w=-]{1,255}$' },
        },
      },
      headers: documentHeaders(limits),
      schemas: schemas.all(),
      responses: problemResponses(),
    },
    'x-limits': limits,
  };
}

function introduction({ requests, windowSeconds, maxBodyBytes, timeoutSeconds, ...of }: Limits): string {
  const { reports, leastPace, sendTimeoutSeconds } = of;
  return [
    'POST a range of days, receive every row of the breakdown: complete, exact, in the order of the grouping keys. There are no pages and no jobs to poll. If something fails halfway the transfer breaks; a truncated report never looks complete.',
    'Money is decimal from end to end: the rows of every breakdown add up to the base report, to the last digit. Ratios are computed from the sums and rounded to 6 places; they are 0 where the denominator is 0. Sums have as many digits as they need. Readers of JSON that make doubles of numbers, as JavaScript does, are exact to 15 digits, up to 2^53 of a count. In Arrow and Parquet a count has 64 bits: a report with one above 2^63 - 1 is refused there with `not_acceptable`, and is whole in JSON, NDJSON and CSV.',
    'Optional fields of the body choose among the rows and figures, order and add them up, and compare them with other days. JSON has the envelope `result`. With `Accept` the rows alone come in other formats, and headers say what the envelope would. `Accept-Encoding` compresses any of them.',
    `An account has ${requests} requests in ${windowSeconds} s, unless the operator set its own limit; \`RateLimit-Policy\` shows it. A body has at most ${maxBodyBytes} bytes, a report takes at most ${timeoutSeconds} s. A range may be of any length.`,
    `Of an account ${reports.mostOfAccount} reports run at a time, of all accounts ${reports.most}; others wait up to ${reports.waitSeconds} s, then get 429. While others wait, an answer that is taken at less than ${leastPace.bytesPerSecond / 1024} KiB/s over ${leastPace.seconds} s breaks off; so does one that nobody reads for ${sendTimeoutSeconds} s.`,
  ].join('\n\n');
}
