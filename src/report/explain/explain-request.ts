import * as z from 'zod';
import { familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { groupingDimensions } from '../columns.ts';
import { dimensionsRead } from '../fields.ts';
import { day, exactBody, inOrder, inverted, optionFields } from '../option-schema.ts';
import { onAllShards, type Plan, planReport, type ShardRouting } from '../plan.ts';
import { optionsOf, rangeOf } from '../request.ts';

/** The row of a report that is asked about. */
export interface ExplainedRow {
  /** Of the report that has the row, and of nothing beside it. */
  readonly plan: Plan;
  /** By column of the rollups: the ids that tell the row apart. */
  readonly row: Readonly<Record<string, string>>;
}

/** Every column that can tell the rows of a family apart, beside the days. */
export function rowKeys(catalog: Catalog, family: string): string[] {
  const { dimensions } = familyOf(catalog, family);
  return groupingDimensions(catalog, { family, dimensions, day: false }).map(({ key }) => key);
}

/** The request body of an explanation. */
export function explainBody(catalog: Catalog, family: string) {
  const { dimensions } = familyOf(catalog, family);
  const { filters } = optionFields(catalog, { family, dimensions, day: false });
  const keys = rowKeys(catalog, family);
  const id = z.string({ error: 'must be text' }).optional();
  return exactBody(
    {
      start_time: day.describe('As the row has it: the first day that it covers.'),
      end_time: day.describe('As the row has it: the last day that it covers.'),
      filters,
      row: z
        .strictObject(Object.fromEntries(keys.map((key) => [key, id])), {
          error: ({ code, input }) =>
            code === 'unrecognized_keys'
              ? `is no id of these rows: they have ${keys.join(', ')}`
              : input === undefined
                ? 'is required: the ids of the row'
                : `must be an object with ids of the row: ${keys.join(', ')}`,
        })
        .meta({
          description:
            'The ids that tell the row apart, as a report with `ids` has them. The row has the sums over a column that is left out, as that of a coarser breakdown has; without any it is the totals.',
          examples: [{ [keys[0] ?? '']: 'autumn', device: 'mobile' }],
        }),
    },
    'A row of a report: its days, its ids and the filters of the report.',
  ).refine(inOrder, inverted);
}

export type ExplainFields = z.infer<ReturnType<typeof explainBody>>;

/** @param routing of the account; absent on a single node */
export function explainedRow(
  catalog: Catalog,
  family: string,
  account: string,
  { row, ...fields }: ExplainFields,
  routing?: ShardRouting,
): ExplainedRow {
  const ids = Object.fromEntries(
    Object.entries(row).flatMap(([key, id]) => (id === undefined ? [] : [[key, id]])),
  );
  const dimensions = familyOf(catalog, family).dimensions.filter(
    (name) => ids[catalog.dimensions[name]?.key ?? ''] !== undefined,
  );
  const breakdown = { family, dimensions, day: false };
  const range = rangeOf(fields);
  const options = optionsOf(fields, range);
  const asked = { options, reads: dimensionsRead(catalog, breakdown, options.filters ?? {}) };
  const plan = planReport(catalog, breakdown, account, range, routing, asked);
  return { plan: onAllShards(plan), row: ids };
}
