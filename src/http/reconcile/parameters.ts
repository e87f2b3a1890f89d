import * as z from 'zod';
import { familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { eventFields, isEventField } from '../../../catalog/events.ts';
import { measuresOf } from '../../reconcile/model/sides.ts';
import { InvalidRequest, judged } from '../../report/invalid-request.ts';
import { day, inverted } from '../../report/option-schema.ts';
import { everyDay } from '../../report/plan.ts';

const { first, last } = everyDay;
const storedDay = day.refine(
  (given) => first <= given && given <= last,
  `must be a day from ${first} to ${last}`,
);

/** How a comparison is asked for; the file is the body. */
export function comparisonParameters(catalog: Catalog, family: string) {
  const measures = measuresOf(familyOf(catalog, family));
  const names = measures.join(', ');
  return z.strictObject({
    start_time: storedDay.optional().describe('The first day that is compared; without it their first.'),
    end_time: storedDay.optional().describe('The last day that is compared; without it their last.'),
    metrics: z
      .string()
      .transform((given) => given.split(','))
      .refine((given) => given.every((name) => measures.includes(name)), `must be some of ${names}`)
      .optional()
      .describe(
        `The figures that are compared, some of ${names}, with commas between them; without it every figure that is not 0 in all records of the file.`,
      ),
    tolerance: z
      .string()
      .regex(/^\d{1,6}(\.\d{1,6})?$/, 'must be a share in percent, such as 5')
      .default('0')
      .describe('In percent of ours: rows that differ by no more are `within`.'),
    timezone: z
      .string()
      .regex(/^[\w+/-]{1,64}$/, 'must be the name of a time zone, such as Europe/Vienna')
      .optional()
      .describe(
        'The IANA time zone of times in their file; without it that of reports. A day without a time is a day of their report.',
      ),
  });
}

export interface ComparisonAsked extends z.output<ReturnType<typeof comparisonParameters>> {
  /** By field of an event the column that it is read from. */
  readonly columns: Readonly<Record<string, string>>;
}

const column = /^columns\.(.+)$/;

/** @throws {InvalidRequest} for a parameter that is unknown, repeated or wrong */
export function comparisonAsked(
  input: ReturnType<typeof comparisonParameters>,
  given: URLSearchParams,
): ComparisonAsked {
  const columns: Record<string, string> = {};
  const others: Record<string, string> = {};
  for (const [name, text] of given) {
    const [, field] = column.exec(name) ?? [];
    if (field !== undefined && !isEventField(field))
      throw new InvalidRequest(name, `names no field of an event; those are ${eventFields.join(', ')}`);
    const into = field === undefined ? others : columns;
    if (Object.hasOwn(into, field ?? name)) throw new InvalidRequest(name, 'is given more than once');
    if (text === '' || text.length > 200 || text.includes('\0'))
      throw new InvalidRequest(name, 'must have 1 to 200 characters');
    into[field ?? name] = text;
  }
  const asked = judged({ input }, others);
  if (asked.start_time && asked.end_time && asked.start_time > asked.end_time)
    throw new InvalidRequest('end_time', inverted.error);
  return { ...asked, columns };
}
