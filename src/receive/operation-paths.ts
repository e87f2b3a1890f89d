import { formats } from '../../ingest/formats/formats.ts';
import type { Content, Operation as Described, PathItem, ResponseObject } from '../http/openapi/model.ts';
import { schemaOf } from '../http/openapi/schemas.ts';
import type { ProblemCode } from '../http/request/problems.ts';
import { linkReport } from '../operations/access.ts';
import { mediaTypes } from '../operations/history.ts';
import type { FileOperation, Operation } from '../operations/operation.ts';
import { operations } from '../operations/operations.ts';
import { methodOf, pathOf } from './operations.ts';

const textTypes = Object.values(formats).flatMap(({ text, mediaTypes }) => (text ? mediaTypes : []));

export const operationsTag = 'operations';

/** What an operation may answer beside what it is for. */
export const operationProblems = [
  'invalid_request',
  'unauthorized',
  'method_not_allowed',
  'request_too_slow',
  'body_too_large',
  'unsupported_media_type',
  'rate_limited',
  'too_many_bodies',
  'internal_error',
  'store_busy',
] as const satisfies readonly ProblemCode[];

type Problems = (codes: readonly ProblemCode[]) => Record<string, ResponseObject>;

/** The OpenAPI paths of operations. @param problems the answers of requests that failed */
export function operationPaths(problems: Problems): Record<string, PathItem> {
  return Object.fromEntries(
    operations.map((operation) => [
      pathOf(operation),
      { [methodOf(operation).toLowerCase()]: describe(operation, problems) },
    ]),
  );
}

function describe(operation: Operation | FileOperation, problems: Problems): Described {
  const { name, summary, input, changes } = operation;
  const isFile = 'file' in operation;
  const { properties = {}, required = [] } = schemaOf(input);
  const takesParameters = isFile || changes === 'nothing';
  const parameters = Object.entries(properties).map(([field, schema]) => ({
    name: field,
    in: 'query' as const,
    description: schema.description ?? '',
    required: required.includes(field),
    schema,
  }));
  const content = isFile
    ? Object.fromEntries(textTypes.map((type) => [type, { schema: {} }]))
    : { 'application/json': { schema: schemaOf(input) } };
  return {
    operationId: name.replace(/[ _](\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary: `${summary.charAt(0).toUpperCase()}${summary.slice(1)}`,
    tags: [operationsTag],
    ...(takesParameters && { parameters }),
    ...(changes !== 'nothing' && {
      requestBody: {
        required: true as const,
        ...(isFile && { description: `The columns or fields ${operation.file}.` }),
        content,
      },
    }),
    responses: {
      200: { description: 'What came of it.', content: answerOf(operation) },
      ...problems([
        ...operationProblems,
        ...(isFile ? (['events_unreadable'] as const) : []),
        ...(operation === linkReport ? (['not_found'] as const) : []),
      ]),
    },
  };
}

/** Rows have no schema: the format that is asked for says what they are; where there is no choice they are NDJSON. */
function answerOf({ answer, input }: Operation | FileOperation): Content {
  if (answer) return { 'application/json': { schema: schemaOf(answer) } };
  const { format } = schemaOf(input).properties ?? {};
  const names: (keyof typeof mediaTypes)[] = Object(format).enum ?? ['ndjson'];
  return Object.fromEntries(
    names.map((each) => {
      const [type = ''] = mediaTypes[each].split(';');
      return [type, { schema: type.startsWith('text/') ? { type: 'string' } : {} }];
    }),
  );
}
