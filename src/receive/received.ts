import * as z from 'zod';

const count = (description: string) => z.int().min(0).describe(description);

/** What a body has become. */
export const receivedSchema = z.strictObject({
  load: z
    .string()
    .describe(
      'The load, as `adtally loads` lists it; of a body that came before, the one that loaded it. Empty where a channel had all of it.',
    ),
  accepted: count(
    'Events that count by this body; with `Idempotency-Key` also where it came before under this key.',
  ),
  rejected: count('Records that are no events. They are kept: `adtally rejects LOAD`.'),
  duplicates: count('Events of these bytes that counted before; 0 with `Idempotency-Key`.'),
  reasons: z
    .array(z.string())
    .describe('The first ten rejected records, each with its place and its faults.'),
  visible_at: z.iso.datetime().describe('From when on every report shows the events.'),
  committed: z
    .int()
    .min(0)
    .optional()
    .describe('With `Channel`: the offset of the record that it goes on with.'),
  replaced_by: z
    .string()
    .optional()
    .describe(
      'The load that has replaced all events of a body that came before: none of them counts any more. Absent where nothing has replaced them.',
    ),
});

export type Received = z.infer<typeof receivedSchema>;
