import { STATUS_CODES } from 'node:http';
import { formatNames, type ReportFormatName, reportFormats } from '../../report/formats.ts';
import { problemCodes, problemExample, problems, statusOf } from '../request/problems.ts';
import type { Content, MediaType, Operation, Parameter, Reference, ResponseObject } from './model.ts';
import { schemaName, schemaRef } from './schemas.ts';

/** What operations are about, beside the families of reports. */
export const tags = {
  changes: 'Which days changed, for those who keep a copy and fetch what is new.',
  explanations: 'Which loads a row is made of, for those who ask where a number comes from.',
  comparisons: 'A report of the other side beside this one, and what explains the gap.',
  closes: 'What changed after a month was closed; reports as of a close have `as_of`.',
  exports: 'The same reports for other tools: as files by GET, by links, and for assistants.',
  mails: 'Reports that an account has sent by mail again and again.',
  service: 'What the service says about itself, to anyone.',
} as const;

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

/** Every status that a problem can have. */
const statuses = [...new Set(problemCodes.map(statusOf))];
/** How a request for a report can fail; only other paths answer with 404 or 503. */
export const ofReport = statuses.filter((status) => status !== 404 && status !== 503);
const without = (...left: number[]) => ofReport.filter((status) => !left.includes(status));
/** How a request that makes no report can fail. */
export const ofJson = without(406, 409, 426);
/** How a request for a file can fail; it has no body. */
export const ofExport = [...without(413, 415), 404];

export interface Described extends Pick<Operation, 'tags' | 'summary' | 'description' | 'security'> {
  readonly id: string;
  readonly parameters?: readonly Parameter[];
  readonly takes?: Content;
  /** The answer 200. */
  readonly gives: { readonly description: string; readonly content?: Content };
  /** Of that answer; unless given, those of an answer of JSON. */
  readonly headers?: readonly string[];
  /** Answers beside it and the refusals, or in the place of one. */
  readonly others?: Operation['responses'];
  /** The statuses of the answers to requests that fail; unless given, those of what knows only today. */
  readonly refusals?: readonly number[];
}

/** An operation that takes a login token, unless `security` says otherwise. */
export function operation({
  id,
  parameters = [],
  takes,
  gives,
  headers = [...limitHeaders, 'Vary'],
  others,
  refusals = without(409),
  ...said
}: Described) {
  return {
    operationId: id,
    ...said,
    ...(said.security?.length !== 0 && {
      parameters: [...parameters, { $ref: '#/components/parameters/X-Request-Id' }],
    }),
    ...(takes && { requestBody: { required: true, content: takes } }),
    responses: {
      200: { ...gives, headers: headerRefs(headers) },
      ...Object.fromEntries(
        refusals.map((status) => [status, { $ref: `#/components/responses/${responseName(status)}` }]),
      ),
      ...others,
    },
  } satisfies Operation;
}

/** A body of JSON. */
export const json = (media: MediaType): Content => ({ 'application/json': media });

/** Headers of a response by name, each a reference to the one definition of it. */
export function headerRefs(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export const rowFormats = formatNames.filter((format) => format !== 'json');

/** The rows alone in each format that has no envelope. */
export const rowsContent = (examples: Partial<Record<ReportFormatName, string>> = {}): Content =>
  Object.fromEntries(
    rowFormats.map((format) => [
      reportFormats[format].mediaType,
      {
        schema: schemaRef(schemaName(format, 'Rows')),
        ...(examples[format] && { example: examples[format] }),
      },
    ]),
  );

/** Of these statuses. The limit of the account is in answers that come after its token was accepted. */
const ownHeaders: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  426: ['Upgrade'],
  429: ['Retry-After'],
  500: ['Retry-After'],
};
const limited = [400, 406, 409, 413, 415, 429, 500];

/** A response for each status that a problem can have, under the names that they have among the components. */
export function problemResponses(): Record<string, ResponseObject> {
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = problemCodes.filter((code) => statusOf(code) === status);
      const examples = ofStatus.map((code) => [
        code,
        { summary: problems[code].when, value: problemExample(code) },
      ]);
      return [
        responseName(status),
        {
          description: ofStatus.map((code) => problems[code].when).join(' Or: '),
          headers: headerRefs([
            ...allHeaders,
            ...(ownHeaders[status] ?? []),
            ...(limited.includes(status) ? limit : []),
          ]),
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

function responseName(status: number): string {
  return (STATUS_CODES[status] ?? String(status)).replaceAll(' ', '');
}
