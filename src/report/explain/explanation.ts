import * as z from 'zod';
import { familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { time } from '../changed-since.ts';

const text = z.string().nullable();
const date = z.string().meta({ format: 'date' });
const count = z.number().meta({ type: 'integer', minimum: 0 });

/** What a row is made of, as `compileExplanation` has it written. */
export function explanationAnswer(catalog: Catalog, family: string) {
  const figures = Object.fromEntries(
    Object.entries(familyOf(catalog, family).measures).map(([name, { type }]) => [
      name,
      type === 'Money' ? z.number() : count,
    ]),
  );
  const part = z.strictObject({
    kind: z
      .enum(['events', 'replay', 'pruned', 'by_hand', 'more'])
      .describe(
        'What the part is; each but `more` has one reason: `events` what a chunk of a file or body brought; `replay` a chunk of corrected rows; `pruned` the sums of what is older than the events that are kept; `by_hand` what came past the loader; `more` all parts behind the first ten thousand.',
      ),
    load: text.meta({
      description: 'The load that brought it; null if the part is no single chunk.',
      examples: ['20261101021000-3f2a91c07'],
    }),
    corrects: text.meta({
      description: 'Of a `replay` the load whose rejected rows it corrects.',
      examples: [null],
    }),
    chunk: text.meta({ description: 'The name of the chunk, a sha256.', examples: ['a'.repeat(64)] }),
    reason: text.meta({
      description: 'Why its records came, as they say themselves; null where they do not, and in `more`.',
      examples: ['makegood'],
    }),
    chunks: count.nullable().describe('How many chunks it stands for; null where that is not known.'),
    first_day: date.describe('The first day on which it adds to the row.'),
    last_day: date.describe('The last such day.'),
    events: count
      .nullable()
      .describe('How many events it adds to the row; null where only their sums are left.'),
    ...figures,
    loaded_at: time.meta({ description: 'When it was loaded.', examples: ['2026-11-01T02:10:04.070312Z'] }),
    unconfirmed: z.boolean().describe('Whether some of its money may still change.'),
    confirmed_at: z
      .string()
      .nullable()
      .meta({
        format: 'date-time',
        description: 'When its days were last confirmed after it was loaded.',
        examples: ['2026-11-02T08:00:00.904113Z'],
      }),
  });
  return z.strictObject({
    row: z.strictObject(figures).describe('The sums of the row, as its report has them.'),
    parts: z.array(part).describe('What adds up to the row, to the last digit, in the order of loading.'),
  });
}
