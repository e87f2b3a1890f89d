import * as z from 'zod';
import { type Breakdown, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { closeNamed, exactBody, inOrder, inverted, optionFields, rangeFields } from './option-schema.ts';
import { optionsOf, type ReportRequest, rangeOf } from './request.ts';

/** The rows of the finest breakdown by day, which is what a close keeps. */
export function closedBreakdown(catalog: Catalog, family: string): Breakdown {
  return { family, dimensions: familyOf(catalog, family).dimensions, day: true };
}

/** The request body of the adjustments of a family. Nothing in it is ignored. */
export function adjustmentsBody(catalog: Catalog, family: string) {
  const { filters, limit, totals } = optionFields(catalog, closedBreakdown(catalog, family));
  const fields = {
    ...rangeFields,
    filters,
    limit,
    totals,
    by_load: z
      .boolean({ error: 'must be true or false' })
      .optional()
      .describe(
        '`true` splits each row by what it came by: `changed_at`, `change`, `load` and `reason`. Rows of one day and ids add up to the row without it.',
      ),
    as_of: closeNamed
      .optional()
      .describe('`closed`, which it is if absent, or the revision of a close, of its month alone.'),
  };
  return exactBody(fields, 'Days of closed months.').refine(inOrder, inverted);
}

export type AdjustmentsFields = z.infer<ReturnType<typeof adjustmentsBody>>;

/** Today minus closed, by day and every id of the rows, of what counts and amounts there are. */
export function adjustmentsRequest(
  catalog: Catalog,
  family: string,
  { as_of = 'closed', by_load = false, ...fields }: AdjustmentsFields,
): ReportRequest {
  const { measures, dimensions } = familyOf(catalog, family);
  const range = rangeOf(fields);
  const options = optionsOf({ ...fields, as_of, ids: true, metrics: Object.keys(measures) }, range);
  return {
    range,
    options: { ...options, adjustments: true, ...(by_load && { by_load }) },
    reads: dimensions,
  };
}
