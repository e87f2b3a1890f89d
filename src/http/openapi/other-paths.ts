import * as z from 'zod';
import { questionPath } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { closesAnswer, closesBody } from '../../close/account-closes.ts';
import { comparisonAnswer } from '../../reconcile/answer.ts';
import { maxFileBytes } from '../../reconcile/limits.ts';
import { changesAnswer, changesBody } from '../../report/changes/changes.ts';
import { explainBody } from '../../report/explain/explain-request.ts';
import { explanationAnswer } from '../../report/explain/explanation.ts';
import { ownOperations, ownPath } from '../mails/own-schedules.ts';
import { comparisonParameters } from '../reconcile/parameters.ts';
import { fileTypes } from '../request/sent-file.ts';
import type { Content, Parameter, PathItem } from './model.ts';
import { allHeaders, headerRefs, json, limitHeaders, ofJson, operation } from './operation.ts';
import { type NamedSchemas, schemaName, schemaOf, schemaRef } from './schemas.ts';

/** What an account asks of a family beside reports. */
export function familyPaths(catalog: Catalog, schemas: NamedSchemas): Record<string, PathItem> {
  const changes = {
    takes: json(schemas.body('ChangesRequest', changesBody)),
    gives: { description: 'The days that changed.', content: json(schemas.result('Changes', changesAnswer)) },
  };
  const closes = {
    takes: json(schemas.body('ClosesRequest', closesBody)),
    gives: { description: 'What was closed.', content: json(schemas.result('Closes', closesAnswer)) },
  };
  const paths = Object.keys(catalog.families).flatMap((family) => {
    const asked = (
      name: Parameters<typeof questionPath>[1],
      described: Omit<Parameters<typeof operation>[0], 'id'>,
    ): [string, PathItem] => [
      questionPath(family, name),
      { post: operation({ id: `${family}_${name}`, ...described }) },
    ];
    return [
      asked('changes', {
        tags: ['changes'],
        summary: `The days that changed in the reports of ${family}`,
        description: changesMeaning,
        ...changes,
      }),
      asked('explain', {
        tags: ['explanations'],
        summary: `The loads that a row of ${family} is made of`,
        description: explanationMeaning,
        takes: json(schemas.body(schemaName(family, 'ExplainRequest'), explainBody(catalog, family))),
        gives: {
          description: 'What the row is made of.',
          content: json(
            schemas.result(schemaName(family, 'Explanation'), explanationAnswer(catalog, family)),
          ),
        },
      }),
      asked('reconcile', {
        tags: ['comparisons'],
        summary: `A report of the other side beside ${family}, and what explains the gap`,
        description: comparisonMeaning,
        parameters: comparisonAsked(catalog, family),
        takes: Object.fromEntries(
          fileTypes.map((type) => [type, { schema: { type: 'string', format: 'binary' } }]),
        ),
        gives: {
          description: 'What the comparison came to.',
          content: json(schemas.result(schemaName(family, 'Comparison'), comparisonAnswer(catalog, family))),
        },
      }),
      asked('closes', {
        tags: ['closes'],
        summary: `The closed months of ${family}`,
        description:
          'Lists the closes of the months that the range touches, newest first. Their names go into `as_of`; `closed` is the first of each month.',
        ...closes,
      }),
    ];
  });
  return Object.fromEntries(paths);
}

const changesMeaning =
  'Lists the days of the account whose rows, or whose confirmation, changed after `changed_since`, ascending: by loads, also of corrections, by loads that were taken back, by rebuilds that came to another result, and by confirmations. What is loaded a second time changes nothing. A listed day that has no rows any more has lost them. Replace what you have of these days, keep `changed_until`, and hand it back as `changed_since` next time: then no change is missed. It is at least ten seconds old, and older than loads under way, so a day that changed just before can be listed twice. A `changed_since` in the future has no changes; `changed_until` is then earlier.';

const explanationMeaning =
  'Takes the days and ids of a row as a report with `ids` has them, and the filters of that report; weeks and months are days like any others. Lists the chunks of files and bodies that the row is the sum of, each with its load, its events and amounts, when it was loaded and when its money was confirmed. The parts add up to the row to the last digit, or there is no answer: `explanation_differs`. Of months whose events the operator has pruned one part has the sums. A row that is not there, or is of another account, has no parts. Names of files are for the operator, whose `adtally explain` shows them.';

const comparisonMeaning = `The body is their report, a file of at most ${maxFileBytes >> 20} MiB, with a day, an id or name and figures in each record; columns are known by their names. It is compared by day, and nothing of it is kept. Explanations are only told where the figures prove them: another time zone, a missing or doubled day or load, another name, what was loaded later, rounding. What is explained and what is not add up to the gap, to the last digit. Amounts are text with all their digits. Records that cannot be read are told in \`unreadable\`, with line and field. Names of files of loads are for the operator, whose \`adtally reconcile\` shows them.`;

function comparisonAsked(catalog: Catalog, family: string): Parameter[] {
  const { properties = {} } = schemaOf(comparisonParameters(catalog, family));
  const asked = Object.entries(properties).map(
    ([name, { description = '', ...schema }]): Parameter => ({ name, in: 'query', description, schema }),
  );
  const column: Parameter = {
    name: 'columns.event_time',
    in: 'query',
    description:
      'The column that the day is read from, where its name does not tell. Likewise `columns.` and any other field of an event: `columns.campaign_id`, `columns.spend`.',
    schema: { type: 'string' },
  };
  return [...asked, column];
}

/** What an account does with the reports that it has sent by mail. */
export function schedulePaths(): Record<string, PathItem> {
  return Object.fromEntries(
    Object.entries(ownOperations).map(([name, { summary, answer, ...of }]) => {
      const described = operation({
        id: `schedule_${name}`,
        tags: ['mails'],
        summary,
        description: `${summary}.${name === 'create' ? ` ${asking}` : ''}`,
        ...('input' in of && { takes: json({ schema: schemaOf(of.input) }) }),
        gives: {
          description: 'What came of it.',
          content: json({ schema: schemaOf(z.strictObject({ result: answer })) }),
        },
        headers: limitHeaders,
        refusals: ofJson,
      });
      return [ownPath(name), { ['input' in of ? 'post' : 'get']: described }];
    }),
  );
}

const asking =
  'Each recipient is asked once, by a mail, whether reports of the account may come, and gets those that are due after a yes. The schedule ends when the login token that made it is revoked. An account has 20 schedules and 50 recipients at most. Whoever gets no answer may send the same again: while an equal schedule is active, no other is made, and the answer has its id.';

export const manifestOperation = operation({
  id: 'manifest',
  tags: ['closes'],
  summary: 'What a close says of itself',
  description:
    'Two lines: an object of JSON, with the sums of the closed month and the loads that it is made of, and its signature (RFC 7515, flattened, detached, EdDSA), which is left out where the operator signs nothing. `/.well-known/jwks.json` has the keys. A token of one family does not open it.',
  parameters: [
    {
      name: 'revision',
      in: 'path',
      required: true,
      description: 'The name of the close.',
      schema: { type: 'string' },
    },
  ],
  gives: {
    description: 'The manifest.',
    content: { 'application/x-ndjson': { schema: { type: 'string' } } },
  },
  headers: limitHeaders,
  refusals: [401, 404, 405, 429, 500],
});

/** The endpoint for assistants; the Model Context Protocol says what its messages are. */
export const mcpOperation = operation({
  id: 'mcp',
  tags: ['exports'],
  summary: 'Model Context Protocol, stateless and read-only: reports for assistants',
  description:
    'Streamable HTTP. The tools list the reports, ask for one (refused with the number of rows where there are more than 1,000), and tell changed days. A tool that asks the service counts as two requests.',
  parameters: [
    {
      name: 'Accept',
      in: 'header',
      required: true,
      description: 'Both media types, as the protocol asks of clients.',
      schema: { type: 'string', examples: ['application/json, text/event-stream'] },
    },
  ],
  takes: json({
    schema: { type: 'object', description: 'A JSON-RPC 2.0 message.' },
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  }),
  gives: {
    description: 'The answer, JSON-RPC 2.0, also of a tool that failed.',
    content: { ...json({ schema: { type: 'object' } }), 'text/event-stream': { schema: { type: 'string' } } },
  },
  headers: limitHeaders,
  others: {
    202: {
      description: 'The message was a notification or an answer, to which nothing is said.',
      headers: headerRefs(limitHeaders),
    },
    400: {
      description:
        'No message of the protocol: an error of JSON-RPC. Several messages in one body: a problem.',
      headers: headerRefs(limitHeaders),
      content: {
        ...json({ schema: { type: 'object' } }),
        'application/problem+json': { schema: schemaRef('Problem') },
      },
    },
    406: {
      description: '`Accept` lacks one of the two: an error of JSON-RPC.',
      headers: headerRefs(limitHeaders),
      content: json({ schema: { type: 'object' } }),
    },
  },
  refusals: ofJson,
});

/** Paths without data of an account, which take no login token. */
export function servicePaths(schemas: NamedSchemas, withOperator: boolean): Record<string, PathItem> {
  const text = { type: 'string' };
  const health = json(schemas.body('Health', z.strictObject({ status: z.literal('ok') })));
  const open = (id: string, summary: string, content: Content, failures: readonly number[] = []) => ({
    get: operation({
      id,
      tags: ['service'],
      summary,
      description: `${summary}. Takes no login token.`,
      security: [],
      gives: { description: 'OK', content },
      headers: allHeaders,
      refusals: [405, ...failures],
    }),
  });
  return {
    '/healthz': open('healthz', 'Whether the process answers', health),
    ...(withOperator && {
      '/readyz': open('readyz', 'Whether ClickHouse can be reached and is migrated', health, [503]),
      '/metrics': open('metrics', 'Measurements for Prometheus', { 'text/plain': { schema: text } }),
    }),
    '/openapi.json': open('openapi', 'This document, OpenAPI 3.1', json({ schema: { type: 'object' } })),
    '/docs': open('docs', 'This document as a page', { 'text/html': { schema: text } }),
    '/.well-known/jwks.json': open('keys', 'The keys that sign closes, a JWKS', {
      'application/jwk-set+json': { schema: { type: 'object' } },
    }),
    '/app': open('app', 'The reports as a page for people', { 'text/html': { schema: text } }),
  };
}
