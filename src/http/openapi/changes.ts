import { z } from 'zod';
import { changesPath } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { changesBody } from '../../report/changes/changes.ts';
import { headerRefs, type JsonSchema, type PathItem, schemaRef } from './model.ts';
import { problemRefs, reportProblems } from './problems.ts';

export const changesTag = 'changes';

const example = { changed_since: '2026-11-20T08:00:00Z' };
const exampleAnswer = {
  result: {
    changed_until: '2026-11-21T07:59:12.123456Z',
    names_changed_at: '2026-11-03T16:20:41.070312Z',
    days: [
      { day: '2026-10-31', changed_at: '2026-11-20T22:14:03.512809Z', unconfirmed: false },
      { day: '2026-11-20', changed_at: '2026-11-21T03:02:55.904113Z', unconfirmed: true },
    ],
  },
};

const description = [
  'Lists the days of the account whose rows, or whose confirmation, changed after `changed_since`, ascending: by loads, also of corrections, by loads that were taken back, by rebuilds that came to another result, and by confirmations. What is loaded a second time changes nothing. A listed day that has no rows any more has lost them.',
  'Replace what you have of these days, keep `changed_until`, and hand it back as `changed_since` next time: then no change is missed. It is at least ten seconds old, and older than loads under way, so a day that changed just before can be listed twice.',
  'A `changed_since` in the future has no changes; `changed_until` is then earlier.',
].join(' ');

/** For each family, which days of its reports changed. */
export function changesPaths(catalog: Catalog): Record<string, PathItem> {
  return Object.fromEntries(
    Object.keys(catalog.families).map((family) => [
      changesPath(family),
      {
        post: {
          operationId: `${family}_changes`,
          tags: [changesTag],
          summary: `The days that changed in the reports of ${family}`,
          description,
          parameters: [{ $ref: '#/components/parameters/X-Request-Id' }],
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaRef('ChangesRequest'), example } },
          },
          responses: {
            200: {
              description: 'The days that changed.',
              headers: headerRefs(['X-Request-Id', 'RateLimit', 'RateLimit-Policy', 'Vary']),
              content: { 'application/json': { schema: schemaRef('Changes'), example: exampleAnswer } },
            },
            ...problemRefs(reportProblems),
          },
        },
      },
    ]),
  );
}

export function changesSchemas(): Record<string, JsonSchema> {
  const { type, properties = {}, required } = z.toJSONSchema(changesBody, { io: 'input' }) as JsonSchema;
  const described =
    'A time as RFC 3339 writes it: the `changed_until` of the last answer, or `1970-01-01T00:00:00Z` for every day.';
  const time = (what: string) => ({ type: 'string', format: 'date-time', description: what });
  return {
    ChangesRequest: {
      type,
      description: 'Since when. Unknown fields are ignored.',
      properties: { changed_since: { description: described, ...properties.changed_since } },
      required,
    },
    Changes: exactly({
      result: exactly({
        changed_until: time('To be handed back as `changed_since` next time.'),
        names_changed_at: {
          ...time(
            'By when every server showed the last change of a name in the reports, which takes a minute and a half; null if no name was ever loaded. If it is later than `changed_since`, the rows of every day may show other names: fetch them all.',
          ),
          type: ['string', 'null'],
        },
        days: {
          type: 'array',
          description: 'The days that changed after `changed_since`, ascending.',
          items: exactly({
            day: { type: 'string', format: 'date', description: 'The day.' },
            changed_at: time('When it last changed.'),
            unconfirmed: {
              type: 'boolean',
              description: 'Whether it has money that is not confirmed.',
            },
          }),
        },
      }),
    }),
  };
}

/** An object with exactly these fields. */
function exactly(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}
