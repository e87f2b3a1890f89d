import { STATUS_CODES } from 'node:http';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import { type ProblemCode, problemCodes, problemExample, problems, statusOf } from '../request/problems.ts';
import type { Content, JsonSchema, Operation, Reference, ResponseObject } from './model.ts';
import { rowFormats, schemaName, schemaRef } from './schemas.ts';

export const changesTag = 'changes';
export const closesTag = 'closes';
export const explainTag = 'explanations';
export const compareTag = 'comparisons';
export const exportTag = 'exports';
export const mailsTag = 'mails';
export const serviceTag = 'service';
export const bearerLogin = 'login_token';
export const basicLogin = 'login_token_as_password';

export const requestId = { $ref: '#/components/parameters/X-Request-Id' };
/** The headers of every answer. */
export const allHeaders = ['X-Request-Id', 'Cache-Control'];
const limit = ['RateLimit', 'RateLimit-Policy'];
export const limitHeaders = [...allHeaders, ...limit];
/** The headers of every report, also as a file. */
export const reportHeaders = [
  ...limitHeaders,
  'Last-Modified',
  'Cache-Status',
  'Vary',
  'Content-Encoding',
  'Content-Disposition',
  'Adtally-Currency',
  'Adtally-Last-Update-Time',
  'Adtally-Column-Types',
  'Adtally-Unconfirmed-Revenue-Dates',
  'Adtally-Row-Count',
  'Adtally-Totals',
  'Adtally-Compare-To',
];

/** A body of JSON. */
export const json = (schema: JsonSchema, example?: unknown): Content => ({
  'application/json': { schema, ...(example !== undefined && { example }) },
});
/** A request that must have this body. */
export const taking = (content: Content): Operation['requestBody'] => ({ required: true, content });
/** The answer of an operation that succeeds. */
export const answering = (
  description: string,
  headers: readonly string[],
  content?: Content,
): { readonly 200: ResponseObject } => ({
  200: { description, headers: headerRefs(headers), ...(content && { content }) },
});

/** Headers of a response by name, each a reference to the one definition of it. */
export function headerRefs(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** The rows alone in each format that has no envelope. */
export const rowsContent = (more: (format: ReportFormatName) => object = () => ({})): Content =>
  Object.fromEntries(
    rowFormats.map((format) => [
      reportFormats[format].mediaType,
      { schema: schemaRef(schemaName(format, 'Rows')), ...more(format) },
    ]),
  );

type Codes = typeof problemCodes;
const without = (codes: Codes, ...left: Codes): Codes => codes.filter((code) => !left.includes(code));

/** The problems of an endpoint of the contract; the others arise at other paths. */
export const reportProblems = without(problemCodes, 'not_found', 'not_ready', 'file_unreadable');

/** Those of comparisons with a file. */
export const fileProblems = without(
  problemCodes,
  'not_found',
  'not_ready',
  'month_not_closed',
  'as_of_too_old',
);

/** Those of endpoints that know only today. */
export const problemsOfToday = without(reportProblems, 'month_not_closed', 'as_of_too_old');

/** The problems of endpoints that answer as JSON and make no report. */
export const jsonProblems = without(
  problemsOfToday,
  'not_acceptable',
  'http_version_too_old',
  'too_many_reports',
);

/** Beside those of every answer. The limit of the account is in answers that come after its token was accepted. */
const headersByStatus: Readonly<Record<number, readonly string[]>> = {
  400: limit,
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  406: limit,
  409: limit,
  413: limit,
  415: limit,
  426: ['Upgrade'],
  429: ['Retry-After', ...limit],
  500: ['Retry-After', ...limit],
};

/** A response for each status that a problem can have, under the names that they have among the components. */
export function problemResponses(): Record<string, ResponseObject> {
  return Object.fromEntries(
    [...new Set(problemCodes.map(statusOf))].map((status) => {
      const ofStatus = problemCodes.filter((code) => statusOf(code) === status);
      const examples = ofStatus.map((code) => [
        code,
        { summary: problems[code].when, value: problemExample(code) },
      ]);
      return [
        responseName(status),
        {
          description: ofStatus.map((code) => problems[code].when).join(' Or: '),
          headers: headerRefs([...allHeaders, ...(headersByStatus[status] ?? [])]),
          content: {
            'application/problem+json': {
              schema: schemaRef('Problem'),
              examples: Object.fromEntries(examples),
            },
          },
        },
      ];
    }),
  );
}

/** The responses of these codes as an operation refers to them. */
export function problemRefs(codes: readonly ProblemCode[]): Record<string, Reference> {
  return Object.fromEntries(
    codes.map((code) => [statusOf(code), { $ref: `#/components/responses/${responseName(statusOf(code))}` }]),
  );
}

function responseName(status: number): string {
  return (STATUS_CODES[status] ?? String(status)).replaceAll(' ', '');
}
