import * as z from 'zod';
import { type Breakdown, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { changedSince } from './changed-since.ts';
import { rowColumns } from './columns.ts';
import { periodNames } from './days.ts';
import { comparisonsOf, filterFields } from './fields.ts';

/** The greatest limit that is accepted. */
const maxLimit = 10_000_000;

/** The rules between fields are not asked about a text that is no date. */
export const day = z.iso.date({
  abort: true,
  error: ({ input }) => (input === undefined ? 'is required' : 'must be a date that exists, as yyyy-mm-dd'),
});

/** The rule between the two days of a range; a request that breaks it is told what `inverted` says. */
export const inOrder = ({ start_time, end_time }: { start_time: string; end_time: string }) =>
  start_time <= end_time;
export const inverted = { path: ['end_time'], error: 'must not be before start_time' };

/** The two days of a range, as every body has them that asks for one. */
export const rangeFields = {
  start_time: day.meta({ description: 'First day of the range, `yyyy-mm-dd`.', examples: ['2026-10-01'] }),
  end_time: day.meta({
    description: 'Last day of the range, included, `yyyy-mm-dd`; not before `start_time`.',
    examples: ['2026-10-31'],
  }),
};

/** Names in a sentence: `start_time and end_time`. */
export const listed = new Intl.ListFormat('en-GB');

/** A body in which nothing is ignored: without a field that was meant the answer would be another. */
export function exactBody<Fields extends z.ZodRawShape>(fields: Fields, description: string) {
  const known = `is not known here: there are ${listed.format(Object.keys(fields))}`;
  return z
    .strictObject(fields, {
      error: ({ code }) => (code === 'unrecognized_keys' ? known : 'the body must be a JSON object'),
    })
    .describe(`${description} Other fields are refused.`);
}

/** The optional fields of the body of a breakdown: how a caller may write each, and what OpenAPI says of it. */
export function optionFields(catalog: Catalog, breakdown: Breakdown) {
  const filters = filterFields(catalog, breakdown.family).map(({ id }) => id);
  const metrics = familyOf(catalog, breakdown.family).columns;
  const texts = rowColumns(catalog, breakdown, { ids: true }).filter(
    ({ source }) => source.kind === 'dimension',
  );
  const ordered = ['start_time', ...texts.map(({ id }) => id), ...metrics, ...comparisonsOf(metrics)];
  return {
    filters: z
      .strictObject(Object.fromEntries(filters.map((id) => [id, values.optional()])), {
        error: ({ code }) =>
          code === 'unrecognized_keys'
            ? `is no field of these reports: they are filtered by ${list(filters)}`
            : 'must be an object: a list of values for each field',
      })
      .optional()
      .describe(
        'Counts only what has one of the values of each field. Texts are those that rows show, `…_id` are ids; the breakdown need not have the field.',
      ),
    metrics: upToFirstWrong(
      z
        .array(oneOf(metrics), { error: `must be a list of ${list(metrics)}` })
        .min(1, 'must name a metric')
        .refine((names) => new Set(names).size === names.length, 'must not name a metric twice'),
    )
      .optional()
      .describe('The figures that rows have, in this order; all of them if absent.'),
    order_by: upToFirstWrong(
      z
        .array(
          z.strictObject(
            {
              field: oneOf(ordered),
              direction: z.enum(['asc', 'desc'], { error: 'must be asc or desc' }).optional(),
            },
            { error: unlessUnknown('must be an object with field and direction', 'field and direction') },
          ),
          { error: 'must be a list of objects with field and direction' },
        )
        .refine(
          (order) => new Set(order.map(({ field }) => field)).size === order.length,
          'must not name a field twice',
        ),
    )
      .optional()
      .describe(
        'What orders the rows: texts and their ids, `start_time`, any metric, with `compare_to` also `…_compared` and `…_change`. `direction` is `asc` unless it says `desc`. No field may come twice. Ties go by the grouping keys.',
      ),
    limit: z
      .int({ error: 'must be a whole number' })
      .min(1, 'must be at least 1')
      .max(maxLimit, `must be at most ${maxLimit}`)
      .optional()
      .describe('Most rows that come. `row_count` then says how many there are.'),
    totals: z
      .boolean({ error: 'must be true or false' })
      .optional()
      .describe(
        '`true` adds `totals`: the figures of all rows together, also of those that `limit` leaves out. Ratios are those of the sums.',
      ),
    ids: z
      .boolean({ error: 'must be true or false' })
      .optional()
      .describe('`true` adds the ids behind names, `…_id`: two campaigns can have one name.'),
    time_grain: (breakdown.day
      ? z.enum(['day', 'week', 'month'], { error: 'must be day, week or month' })
      : z.never({ error: 'needs a breakdown by date' })
    )
      .optional()
      .describe(
        'Breakdowns by date only: what a row covers. Weeks are those of ISO 8601, from Monday; weeks and months at the edges are cut to the range.',
      ),
    changed_since: (breakdown.day
      ? changedSince
      : z.never({ error: 'needs a breakdown by date: other rows would be sums of some of their days' })
    )
      .optional()
      .describe(
        'Breakdowns by date only, without `compare_to`, weeks and months: the rows of the days that changed after this time, which `/changes` lists. A time as RFC 3339 writes it.',
      ),
    as_of: z
      .union([closeNamed, z.iso.datetime({ offset: true, error: noMoment })], { error: noMoment })
      .optional()
      .describe(
        'Without `changed_since`: figures, names and unconfirmed days as they were, whatever came since. `closed`: as their months were last closed, each month that the range touches; or the name of a revision, of its month alone. A month that is not closed is answered with 409. Or a time as RFC 3339 writes it: as a report had them then. A time of which that cannot be told is answered with 409.',
      ),
    compare_to: z
      .union([
        z.enum(periodNames),
        // The last one, because it says what is wrong.
        z
          .strictObject(
            { start_time: day, end_time: day },
            { error: unlessUnknown(comparable, 'start_time and end_time') },
          )
          .refine(inOrder, inverted),
      ])
      .optional()
      .describe(
        'Adds the same of other days to each figure, as `…_compared`, and the difference, as `…_change`. `previous_period`: as many days, right before the range. `previous_weeks`: as many days, whole weeks earlier, so that days of the week match. `previous_month`, `previous_year`: as many days, from the same date a month or a year earlier, and none beyond the last day a month or a year earlier. Or two dates. By date the first days are compared, the second ones, and so on, so both must have as many. A row that only one of the two has is there, with 0 for the other.',
      ),
  };
}

const notClosed = 'must be closed, or the name of a revision: 64 hex digits';
const noMoment = `${notClosed}; or a time as RFC 3339 writes it, such as 2026-11-03T09:00:00Z`;
export const closePattern = /^(closed|[0-9a-f]{64})$/;
/** What was closed. */
export const closeNamed = z.string({ error: notClosed }).regex(closePattern, notClosed);

const comparable = `must be ${periodNames.join(', ')}, or an object with start_time and end_time (in an address two days with a slash)`;

/** What is said of an object of another shape, and of a member that it cannot have. */
const unlessUnknown =
  (reason: string, members: string) =>
  ({ code }: { readonly code?: string | undefined }) =>
    code === 'unrecognized_keys' ? `is not known here: there are ${members}` : reason;

/** A list, judged up to its first wrong element: a body has room for 250,000, and zod writes an issue for each. */
function upToFirstWrong<Element extends z.ZodType>(list: z.ZodArray<Element>) {
  const isWrong = (each: unknown) => !list.element.safeParse(each).success;
  return z.preprocess((given) => {
    if (!Array.isArray(given)) return given;
    const wrong = given.findIndex(isWrong);
    return wrong < 0 ? given : given.slice(0, wrong + 1);
  }, list);
}

const values = upToFirstWrong(
  z
    .array(z.string({ error: 'must be text' }), { error: 'must be a list of texts' })
    .min(1, 'must list a value'),
);

function oneOf(names: readonly string[]) {
  return z.enum(names, { error: `must be one of ${list(names)}` });
}

const list = (names: readonly string[]) => names.join(', ');
