import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { mostRows } from './limits.ts';
import { type About, type CauseName, causes, statuses } from './model/about.ts';
import { keyOf, measuresOf } from './model/sides.ts';
import type { Reconciled } from './reconcile.ts';
import { compileRows, countRows } from './rows.ts';
import type { TheirReport } from './their-rows.ts';
import { verdictOf } from './verdict.ts';

/**
 * What a comparison came to, as JSON: the verdict, how many rows there are, and those that are not equal.
 * @param most rows that are listed, the first ones; absent: all
 */
export async function answerOf(
  reconciled: Reconciled,
  { rejected, rejects }: TheirReport,
  tolerance: string,
  most?: number,
): Promise<string> {
  const { reader } = reconciled.compared;
  const { of: rows, listed } = await countRows(reconciled, tolerance);
  const { query, settings, ...rest } = compileRows(reconciled, tolerance, most);
  const list = await text(
    await reader.stream({
      ...rest,
      query: `${query}\nFORMAT JSONEachRow`,
      settings: { ...settings, output_format_json_array_of_rows: 1 },
    }),
  );
  const head = {
    ...verdictOf(reconciled),
    unreadable: { records: rejected, first: rejects },
    rows,
    more_differences: most === undefined ? 0 : Math.max(0, listed - most),
  };
  return `${JSON.stringify(head).slice(0, -1)},"differences":${list.trim() || '[]'}}`;
}

const amount = z.string().describe('A decimal with all its digits.');
const told = z.strictObject({
  net: amount.describe('Theirs less ours, of all rows.'),
  total: amount.describe('The same without signs: the sum of what each row differs by.'),
});
const date = z.string().meta({ format: 'date' });
const count = z.number().meta({ type: 'integer', minimum: 0 });
const about = {
  zone: z.string().optional().describe('The time zone of their days.'),
  other_zones: z.array(z.string()).optional().describe('Others that would fit as well.'),
  our_zone: z.string().optional(),
  days: z.array(date).optional().describe('Days that their report lacks, or has twice.'),
  their_days: z.array(date).optional().describe('Days that only their report has.'),
  names: z
    .array(z.strictObject({ theirs: z.string(), ours: z.string() }))
    .optional()
    .describe('What they call a campaign or ad unit, and its id here.'),
  loads: z.array(z.string()).optional().describe('The loads that brought it.'),
  loaded_after: z.string().optional().describe('The moment, in UTC.'),
  figures: z.array(z.string()).optional(),
} satisfies Record<keyof About, z.ZodType>;

/** What `answerOf` writes. */
export function comparisonAnswer(catalog: Catalog, family: string) {
  const measures = measuresOf(familyOf(catalog, family));
  const each = <Value extends z.ZodType>(value: Value) =>
    z.strictObject(Object.fromEntries(measures.map((name) => [name, value.optional()])));
  const inRow = z.strictObject({ ours: amount, theirs: amount, difference: amount, unexplained: amount });
  const status = z
    .enum(statuses)
    .describe(
      '`within` the tolerance. A row that is `equal` is listed only where explanations leave something on it.',
    );
  const key = keyOf(catalog, family);
  const gap = { net: '-250', total: '250' };
  return z.strictObject({
    account: z.string().meta({ examples: ['acme'] }),
    family: z.literal(family),
    from: date.meta({ description: 'The first day that is compared.', examples: ['2026-10-01'] }),
    to: date.describe('The last day that is compared.'),
    figures: each(z.strictObject({ ours: amount, theirs: amount, gap: told, unexplained: told })).meta({
      description:
        'Totals of each figure that is compared. What is explained and what is not add up to the gap.',
      examples: [
        { impressions: { ours: '8250', theirs: '8000', gap, unexplained: { net: '0', total: '0' } } },
      ],
    }),
    explained: z
      .array(
        z.strictObject({
          cause: z
            .enum(Object.keys(causes) as CauseName[])
            .meta({ 'x-enum-descriptions': Object.values(causes), examples: ['missing_day'] }),
          what: z.string().meta({
            description: 'The explanation, in English.',
            examples: ['their report has nothing of 2026-10-31'],
          }),
          about: z.strictObject(about).meta({ examples: [{ days: ['2026-10-31'], their_days: [] }] }),
          figures: each(told).meta({
            description: 'How much of the gap it accounts for.',
            examples: [{ impressions: gap }],
          }),
        }),
      )
      .describe('What explains the gap, in the order in which it was found.'),
    untried: z
      .array(z.string())
      .meta({ description: 'What could not be tried, in English.', examples: [[]] }),
    unreadable: z
      .strictObject({
        records: count,
        first: z.array(z.string()).meta({
          description: 'The first of them, each with its line and field, in English.',
          examples: [['the file line 3: impressions must be a whole number, not "many"']],
        }),
      })
      .describe('Records of the file that cannot be read, and so are compared with nothing.'),
    rows: z.strictObject(Object.fromEntries(statuses.map((name) => [name, count]))).meta({
      description: 'How many rows by day and key there are of each status.',
      examples: [{ equal: 30, within: 0, differs: 0, only_ours: 1, only_theirs: 0 }],
    }),
    more_differences: count.meta({
      description: 'How many rows follow those in `differences`.',
      examples: [0],
    }),
    differences: z
      .array(
        z.strictObject({
          day: date,
          [key]: z.string(),
          name: z.string(),
          status,
          ...each(inRow).shape,
        }),
      )
      .meta({
        description: `Rows that are not equal, by day and key: the first ${mostRows}.`,
        examples: [
          [
            {
              ...{ day: '2026-10-31', [key]: 'autumn', name: 'Autumn', status: 'only_ours' },
              impressions: { ours: '250', theirs: '0', difference: '-250', unexplained: '0' },
            },
          ],
        ],
      }),
  });
}
