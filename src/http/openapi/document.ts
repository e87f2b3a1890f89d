import { existsSync, readFileSync } from 'node:fs';
import * as z from 'zod';
import type { Catalog } from '../../../catalog/catalog.ts';
import { documentHeaders } from './headers.ts';
import {
  basicLogin,
  bearerLogin,
  changesTag,
  closesTag,
  compareTag,
  explainTag,
  exportTag,
  mailsTag,
  problemResponses,
  serviceTag,
} from './messages.ts';
import type { Limits, OpenApiDocument } from './model.ts';
import { documentPaths } from './paths.ts';
import { schedulePaths } from './schedule-paths.ts';
import { componentSchemas } from './schemas.ts';

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
  const { name, version, description, license } = manifest();
  return {
    openapi: '3.1.1',
    info: {
      title: name,
      version,
      summary: description,
      description: introduction(limits),
      license: { name: license, identifier: license },
    },
    servers: [{ url: '/', description: 'The service that serves this document.' }],
    security: [{ [bearerLogin]: [] }],
    tags: [
      ...Object.entries(catalog.families).map(([family, { owner, entity }]) => ({
        name: family,
        description: `Reports for ${owner.replace('_id', '')}s, per ${entity.replaceAll('_', ' ')}.`,
      })),
      {
        name: changesTag,
        description: 'Which days changed, for those who keep a copy and fetch what is new.',
      },
      {
        name: explainTag,
        description: 'Which loads a row is made of, for those who ask where a number comes from.',
      },
      {
        name: compareTag,
        description: 'A report of the other side beside this one, and what explains the gap.',
      },
      {
        name: closesTag,
        description: 'What changed after a month was closed; reports as of a close have `as_of`.',
      },
      {
        name: exportTag,
        description: 'The same reports for other tools: as files by GET, by links, and for assistants.',
      },
      ...(withSchedules
        ? [{ name: mailsTag, description: 'Reports that an account has sent by mail again and again.' }]
        : []),
      { name: serviceTag, description: 'What the service says about itself, to anyone.' },
    ],
    paths: { ...documentPaths(catalog, withOperator), ...(withSchedules && schedulePaths()) },
    components: {
      securitySchemes: { [bearerLogin]: bearer, [basicLogin]: basic },
      parameters: {
        'X-Request-Id': {
          name: 'X-Request-Id',
          in: 'header',
          description: 'Returned with the answer and logged with the request; generated if absent.',
          schema: { type: 'string', pattern: '^[\\w=-]{1,255}$' },
        },
      },
      headers: documentHeaders(limits),
      schemas: componentSchemas(catalog),
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

const packageManifest = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  license: z.string(),
});

/** @throws when package.json is neither where a checkout has it nor where an installed build has it */
function manifest(): z.infer<typeof packageManifest> {
  const places = ['../../../package.json', '../../../../package.json'].map(
    (path) => new URL(path, import.meta.url),
  );
  const place = places.find((url) => existsSync(url));
  if (!place) throw new Error('package.json of adtally is missing');
  return packageManifest.parse(JSON.parse(readFileSync(place, 'utf8')));
}
