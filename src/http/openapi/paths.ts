import {
  adjustmentsPath,
  changesPath,
  closesPath,
  type Endpoint,
  endpointName,
  endpoints,
  explainPath,
  reconcilePath,
} from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { maxFileBytes } from '../../reconcile/limits.ts';
import { closedBreakdown } from '../../report/adjustments.ts';
import { groupingDimensions, rowColumns } from '../../report/columns.ts';
import { metricsOf } from '../../report/fields.ts';
import type { ReportFormatName } from '../../report/formats.ts';
import { comparisonParameters } from '../reconcile/parameters.ts';
import type { ProblemCode } from '../request/problems.ts';
import { fileTypes } from '../request/sent-file.ts';
import {
  exampleAdjustments,
  exampleChanges,
  exampleCloses,
  exampleComparison,
  exampleExplanation,
  exampleOptions,
  exampleRequest,
  exampleRows,
  exampleUnconfirmedDates,
  exampleUpdateTime,
} from './examples.ts';
import { exportPaths } from './export-paths.ts';
import {
  allHeaders,
  answering,
  bearerLogin,
  changesTag,
  closesTag,
  compareTag,
  explainTag,
  exportTag,
  fileProblems,
  headerRefs,
  json,
  jsonProblems,
  limitHeaders,
  problemRefs,
  problemsOfToday,
  reportHeaders,
  reportProblems,
  requestId,
  rowsContent,
  serviceTag,
  taking,
} from './messages.ts';
import type { Content, Operation, Parameter, PathItem } from './model.ts';
import { schemaName, schemaOf, schemaRef } from './schemas.ts';

/** Every path of the service, with what it takes, answers and refuses. */
export function documentPaths(catalog: Catalog, withOperator: boolean): Record<string, PathItem> {
  const families = Object.entries(catalog.families);
  return {
    ...Object.fromEntries(
      endpoints(catalog).map((endpoint) => [endpoint.path, { post: reportOperation(catalog, endpoint) }]),
    ),
    ...Object.fromEntries(
      families.map(([family]) => [changesPath(family), { post: changesOperation(family) }]),
    ),
    ...Object.fromEntries(
      families.map(([family]) => [explainPath(family), { post: explainOperation(catalog, family) }]),
    ),
    ...Object.fromEntries(
      families.map(([family]) => [reconcilePath(family), { post: comparisonOperation(catalog, family) }]),
    ),
    ...Object.fromEntries(
      families.map(([family]) => [adjustmentsPath(family), { post: adjustmentsOperation(catalog, family) }]),
    ),
    ...Object.fromEntries(families.flatMap(([family]) => exportPaths(catalog, family))),
    ...Object.fromEntries(
      families.map(([family]) => [closesPath(family), { post: closesOperation(family) }]),
    ),
    '/v1/closes/{revision}/manifest': { get: manifestOperation },
    '/mcp': { post: mcpOperation },
    ...servicePaths(withOperator),
  };
}

const listed = new Intl.ListFormat('en-GB');

function reportOperation(catalog: Catalog, { path, breakdown }: Endpoint): Operation {
  const aliasOf = catalog.aliases[path];
  const grouping = groupingDimensions(catalog, breakdown);
  const keys = [catalog.families[breakdown.family]?.entity ?? '', ...breakdown.dimensions];
  const rows = [...keys.map((key) => key.replaceAll('_', ' ')), ...(breakdown.day ? ['day'] : [])];
  const summary = `One row per ${listed.format(rows)}`;
  const added = grouping.slice(1).flatMap(({ columns }) => columns.map(({ id }) => `\`${id}\``));
  const sentences = [
    aliasOf ? `An alias: the same as \`${aliasOf}\`.` : `${summary}.`,
    added.length ? `Adds ${listed.format(added)} to every row.` : '',
    breakdown.day ? '`start_time` and `end_time` of a row are the day that it covers.' : '',
  ];
  const endpoint = endpointName(aliasOf ?? path);
  return {
    operationId: endpointName(path),
    tags: [breakdown.family],
    summary: aliasOf ? `${summary} (alias)` : summary,
    description: sentences.filter(Boolean).join(' '),
    ...(aliasOf && { 'x-alias-of': aliasOf }),
    parameters: [requestId],
    requestBody: taking({
      'application/json': {
        schema: schemaRef(schemaName(endpoint, 'Request')),
        examples: {
          range: { summary: 'Every row of a month.', value: exampleRequest },
          options: {
            summary: 'The ten rows that grew most since the month before.',
            value: exampleOptions(metricsOf(catalog, breakdown)),
          },
        },
      },
    }),
    responses: {
      ...answering(
        'The report, complete.',
        ['Adtally-Account', ...reportHeaders],
        reportContent(catalog, breakdown, endpoint),
      ),
      ...problemRefs(reportProblems),
    },
  };
}

/** A report in every format there is. */
function reportContent(catalog: Catalog, breakdown: Endpoint['breakdown'], endpoint: string): Content {
  const columns = rowColumns(catalog, breakdown);
  const rows = exampleRows(catalog, breakdown);
  const result = {
    last_update_time: exampleUpdateTime,
    rows,
    column_metadata: columns.map(({ id, type }) => ({ id, type })),
    unconfirmed_revenue_dates: exampleUnconfirmedDates,
  };
  const lines = [columns.map(({ id }) => id), ...rows.map(Object.values)];
  const examples: Partial<Record<ReportFormatName, string>> = {
    ndjson: rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
    csv: lines.map((values) => `${values.map((value) => JSON.stringify(value)).join(',')}\n`).join(''),
  };
  // The plain report first.
  const anyOf = ['', 'Options'].map((kind) => schemaRef(kind + schemaName(endpoint, 'Report')));
  return {
    ...json({ anyOf }, { result }),
    ...rowsContent((format) => ({ ...(examples[format] && { example: examples[format] }) })),
  };
}

function changesOperation(family: string): Operation {
  return {
    operationId: `${family}_changes`,
    tags: [changesTag],
    summary: `The days that changed in the reports of ${family}`,
    description: [
      'Lists the days of the account whose rows, or whose confirmation, changed after `changed_since`, ascending: by loads, also of corrections, by loads that were taken back, by rebuilds that came to another result, and by confirmations. What is loaded a second time changes nothing. A listed day that has no rows any more has lost them.',
      'Replace what you have of these days, keep `changed_until`, and hand it back as `changed_since` next time: then no change is missed. It is at least ten seconds old, and older than loads under way, so a day that changed just before can be listed twice.',
      'A `changed_since` in the future has no changes; `changed_until` is then earlier.',
    ].join(' '),
    parameters: [requestId],
    requestBody: taking(json(schemaRef('ChangesRequest'), exampleChanges.request)),
    responses: {
      ...answering(
        'The days that changed.',
        [...limitHeaders, 'Vary'],
        json(schemaRef('Changes'), exampleChanges.answer),
      ),
      ...problemRefs(problemsOfToday),
    },
  };
}

function explainOperation(catalog: Catalog, family: string): Operation {
  const { request, answer } = exampleExplanation(catalog, family);
  return {
    operationId: `${family}_explain`,
    tags: [explainTag],
    summary: `The loads that a row of ${family} is made of`,
    description: [
      'Takes the days and ids of a row as a report with `ids` has them, and the filters of that report; weeks and months are days like any others. Lists the chunks of files and bodies that the row is the sum of, each with its load, its events and amounts, when it was loaded and when its money was confirmed.',
      'The parts add up to the row to the last digit, or there is no answer: `explanation_differs`. Of months whose events the operator has pruned one part has the sums. A row that is not there, or is of another account, has no parts.',
      'Names of files are for the operator, whose `adtally explain` shows them.',
    ].join(' '),
    parameters: [requestId],
    requestBody: taking(json(schemaRef(schemaName(family, 'ExplainRequest')), request)),
    responses: {
      ...answering(
        'What the row is made of.',
        [...limitHeaders, 'Vary'],
        json(schemaRef(schemaName(family, 'Explanation')), answer),
      ),
      ...problemRefs(problemsOfToday),
    },
  };
}

function comparisonOperation(catalog: Catalog, family: string): Operation {
  const { properties = {} } = schemaOf(comparisonParameters(catalog, family));
  const asked = Object.entries(properties).map(
    ([name, { description = '', ...schema }]): Parameter => ({
      ...{ name, in: 'query', description, schema },
    }),
  );
  const column: Parameter = {
    ...{ name: 'columns.event_time', in: 'query', schema: { type: 'string' } },
    description:
      'The column that the day is read from, where its name does not tell. Likewise `columns.` and any other field of an event: `columns.campaign_id`, `columns.spend`.',
  };
  return {
    operationId: `${family}_reconcile`,
    tags: [compareTag],
    summary: `A report of the other side beside ${family}, and what explains the gap`,
    description: [
      `The body is their report, a file of at most ${maxFileBytes >> 20} MiB, with a day, an id or name and figures in each record; columns are known by their names. It is compared by day, and nothing of it is kept.`,
      'Explanations are only told where the figures prove them: another time zone, a missing or doubled day or load, another name, what was loaded later, rounding. What is explained and what is not add up to the gap, to the last digit. Amounts are text with all their digits.',
      'Records that cannot be read are told in `unreadable`, with line and field. Names of files of loads are for the operator, whose `adtally reconcile` shows them.',
    ].join(' '),
    parameters: [...asked, column, requestId],
    requestBody: taking(
      Object.fromEntries(fileTypes.map((type) => [type, { schema: { type: 'string', format: 'binary' } }])),
    ),
    responses: {
      ...answering(
        'What the comparison came to.',
        [...limitHeaders, 'Vary'],
        json(schemaRef(schemaName(family, 'Comparison')), exampleComparison(catalog, family)),
      ),
      ...problemRefs(fileProblems),
    },
  };
}

function adjustmentsOperation(catalog: Catalog, family: string): Operation {
  return {
    operationId: `${family}_adjustments`,
    tags: [closesTag],
    summary: `What changed in ${family} after their months were closed`,
    description: [
      'Takes days of closed months and answers with today minus closed: a row for each day and all ids whose counts or amounts differ now, with the differences, names of today, and no ratios. Closed rows (`as_of` of a report) and adjustments are the rows of today, to the last digit.',
      'By default each month is compared with its last close; `as_of` names a revision. A month that is not closed is answered with 409. `by_load` splits each row by the loads that it came by, when, how and why.',
    ].join(' '),
    parameters: [requestId],
    requestBody: taking(json(schemaRef(schemaName(family, 'AdjustmentsRequest')), exampleRequest)),
    responses: {
      ...answering('What changed, complete.', ['Adtally-Account', ...reportHeaders], {
        ...json(schemaRef(schemaName(family, 'Adjustments')), {
          result: exampleAdjustments(catalog, closedBreakdown(catalog, family)),
        }),
        ...rowsContent(),
      }),
      ...problemRefs(reportProblems),
    },
  };
}

function closesOperation(family: string): Operation {
  return {
    operationId: `${family}_closes`,
    tags: [closesTag],
    summary: `The closed months of ${family}`,
    description:
      'Lists the closes of the months that the range touches, newest first. Their names go into `as_of`; `closed` is the first of each month.',
    parameters: [requestId],
    requestBody: taking(json(schemaRef('ClosesRequest'), exampleRequest)),
    responses: {
      ...answering('What was closed.', [...limitHeaders, 'Vary'], json(schemaRef('Closes'), exampleCloses)),
      ...problemRefs(problemsOfToday),
    },
  };
}

const manifestOperation: Operation = {
  operationId: 'manifest',
  tags: [closesTag],
  summary: 'What a close says of itself',
  description:
    'Two lines: an object of JSON, with the sums of the closed month and the loads that it is made of, and its signature (RFC 7515, flattened, detached, EdDSA), which is left out where the operator signs nothing. `/.well-known/jwks.json` has the keys. A token of one family does not open it.',
  parameters: [
    requestId,
    {
      name: 'revision',
      in: 'path',
      required: true,
      description: 'The name of the close.',
      schema: { type: 'string' },
    },
  ],
  responses: {
    ...answering('The manifest.', limitHeaders, { 'application/x-ndjson': { schema: { type: 'string' } } }),
    ...problemRefs(['unauthorized', 'not_found', 'method_not_allowed', 'rate_limited', 'internal_error']),
  },
};

/** The endpoint for assistants; the Model Context Protocol says what its messages are. */
const mcpOperation: Operation = {
  operationId: 'mcp',
  tags: [exportTag],
  summary: 'Model Context Protocol, stateless and read-only: reports for assistants',
  description:
    'Streamable HTTP. The tools list the reports, ask for one (refused with the number of rows where there are more than 1,000), and tell changed days. A tool that asks the service counts as two requests. What is no message of the protocol gets 400 with an error of JSON-RPC.',
  security: [{ [bearerLogin]: [] }],
  parameters: [
    requestId,
    {
      name: 'Accept',
      in: 'header',
      required: true,
      description: 'Both media types, as the protocol asks of clients.',
      schema: { type: 'string', examples: ['application/json, text/event-stream'] },
    },
  ],
  requestBody: taking(
    json(
      { type: 'object', description: 'A JSON-RPC 2.0 message.' },
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    ),
  ),
  responses: {
    ...answering('The answer, JSON-RPC 2.0, also of a tool that failed.', limitHeaders, {
      ...json({ type: 'object' }),
      'text/event-stream': { schema: { type: 'string' } },
    }),
    202: {
      description: 'The message was a notification or an answer, to which nothing is said.',
      headers: headerRefs(limitHeaders),
    },
    406: {
      description: '`Accept` lacks one of the two: an error of JSON-RPC.',
      headers: headerRefs(limitHeaders),
      content: json({ type: 'object' }),
    },
    ...problemRefs(jsonProblems),
  },
};

/** Paths without data of an account, which take no login token. */
function servicePaths(withOperator: boolean): Record<string, PathItem> {
  const health = json(schemaRef('Health'));
  const page = { 'text/html': { schema: { type: 'string' } } };
  return {
    '/healthz': { get: open('healthz', 'Whether the process answers', health) },
    ...(withOperator && {
      '/readyz': {
        get: open('readyz', 'Whether ClickHouse can be reached and is migrated', health, ['not_ready']),
      },
      '/metrics': {
        get: open('metrics', 'Measurements for Prometheus', { 'text/plain': { schema: { type: 'string' } } }),
      },
    }),
    '/openapi.json': { get: open('openapi', 'This document, OpenAPI 3.1', json({ type: 'object' })) },
    '/docs': { get: open('docs', 'This document as a page', page) },
    '/.well-known/jwks.json': {
      get: open('keys', 'The keys that sign closes, a JWKS', {
        'application/jwk-set+json': { schema: { type: 'object' } },
      }),
    },
    '/app': { get: open('app', 'The reports as a page for people', page) },
  };
}

function open(
  operationId: string,
  summary: string,
  content: Content,
  problems: readonly ProblemCode[] = [],
): Operation {
  return {
    operationId,
    tags: [serviceTag],
    summary,
    description: `${summary}. Takes no login token.`,
    security: [],
    responses: {
      ...answering('OK', allHeaders, content),
      ...problemRefs(['method_not_allowed', ...problems]),
    },
  };
}
