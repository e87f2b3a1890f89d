import { z } from 'zod';
import type { Breakdown } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { requestSchema } from '../../report/request.ts';
import type { JsonSchema } from './model.ts';

/** What each field of a body means. */
const meanings: Readonly<Record<string, string>> = {
  start_time: 'First day of the range, `yyyy-mm-dd`.',
  end_time: 'Last day of the range, included, `yyyy-mm-dd`; not before `start_time`.',
  filters:
    'Counts only what has one of the values of each field. Texts are those that rows show, `…_id` are ids; the breakdown need not have the field.',
  metrics: 'The figures that rows have, in this order; all of them if absent.',
  order_by:
    'What orders the rows: texts, `start_time`, any metric, with `compare_to` also `…_compared` and `…_change`. `direction` is `asc` unless it says `desc`. Ties go by the grouping keys.',
  limit: 'Most rows that come. `row_count` then says how many there are.',
  totals:
    '`true` adds `totals`: the figures of all rows together, also of those that `limit` leaves out. Ratios are those of the sums.',
  time_grain:
    'Breakdowns by date only: what a row covers. Weeks are those of ISO 8601, from Monday; weeks and months at the edges are cut to the range.',
  changed_since:
    'Breakdowns by date only, without `compare_to`, weeks and months: the rows of the days that changed after this time, which `/changes` lists. A time as RFC 3339 writes it.',
  compare_to:
    'Adds the same of other days to each figure, as `…_compared`, and the difference, as `…_change`. `previous_period`: as many days, right before the range. `previous_year`: as many days, from the same date a year earlier. Or two dates. By date the first days are compared, the second ones, and so on, so both must have as many. A row that only one of the two has is there, with 0 for the other.',
};

/** The schema that validates the request, as JSON Schema; its rules between fields stay sentences. */
export function bodySchema(catalog: Catalog, breakdown: Breakdown): JsonSchema {
  const schema = z.toJSONSchema(requestSchema(catalog, breakdown), { io: 'input' }) as JsonSchema;
  const properties = Object.entries(schema.properties ?? {}).filter(([, field]) => field.not === undefined);
  return {
    type: schema.type,
    description: 'A range of days, and what else is asked for. Unknown fields are ignored.',
    properties: Object.fromEntries(
      properties.map(([id, field]) => [id, { description: meanings[id], ...field }]),
    ),
    required: schema.required,
  };
}
