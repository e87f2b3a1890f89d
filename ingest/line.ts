import { z } from 'zod';
import { eventTypes } from '../src/catalog.ts';
import {
  confirmedPattern,
  type EventField,
  eventFields,
  eventTimePattern,
  moneyPattern,
  quantityPattern,
} from './statement.ts';

/** A field of an event line as text, whatever the format; absent and empty mean the same. */
export type LineFields = Readonly<Record<string, string | undefined>>;

/** A rule that a line breaks. */
export interface LineFault {
  /** Empty when the line as a whole cannot be read. */
  readonly field: string;
  readonly reason: string;
}

const characters = (text: string) => [...text].length;
const id = (most: number) =>
  z.string().refine((text) => characters(text) <= most, `must be at most ${most} characters`);
const money = z
  .string()
  .regex(
    new RegExp(moneyPattern),
    'must be a decimal with at most 12 digits before the point and 6 after it',
  );

/** The rules of an event line. The engine enforces the same; this says them to a person. */
const eventLine = z
  .object({
    event_id: id(64),
    event_time: z
      .string()
      .regex(
        new RegExp(eventTimePattern),
        'must be a date-time such as 2026-01-31T12:00:00.000Z, 2026-01-31T12:00:00+02:00 or 2026-01-31 12:00:00 (UTC)',
      )
      .refine(isCalendarDay, 'must be a day that exists')
      .refine((text) => text >= '1971' && text < '2149-06-05', 'must be between 1971 and 2149'),
    event_type: z.enum(eventTypes, `must be one of ${eventTypes.join(', ')}`),
    advertiser_id: id(128),
    campaign_id: id(128),
    creative_id: id(128),
    publisher_id: id(128),
    ad_unit_id: id(128),
    site_id: id(128),
    device: id(32),
    quantity: z
      .string()
      .regex(new RegExp(quantityPattern), 'must be a whole number from 1 to 4294967295')
      .refine(
        (text) => Number(text) >= 1 && Number(text) <= 4294967295,
        'must be a whole number from 1 to 4294967295',
      ),
    spend: money,
    revenue: money,
    confirmed: z.string().regex(new RegExp(confirmedPattern), 'must be true or false'),
  } satisfies Record<EventField, z.ZodType>)
  .partial()
  .required({ event_id: true, event_time: true, event_type: true })
  .strict();

/** Every rule that a line breaks; none when it is an event. @param ignoreUnknown a field no event has is no fault */
export function faultsOf(line: LineFields, ignoreUnknown = false): LineFault[] {
  const present = Object.fromEntries(
    Object.entries(line).filter(([name, value]) => (isEventField(name) ? value : !ignoreUnknown)),
  );
  const parsed = eventLine.safeParse(present);
  const faults = parsed.success ? [] : parsed.error.issues.flatMap((issue) => explain(issue, present));
  return [
    // One field may break several rules of its own; the first says enough.
    ...faults.filter(({ field }, n) => faults.findIndex((other) => other.field === field) === n),
    ...sideFaults(present, ['advertiser_id', 'campaign_id', 'creative_id']),
    ...sideFaults(present, ['publisher_id', 'ad_unit_id', 'site_id']),
    ...(eventFields.some((field) => field.endsWith('_id') && field !== 'event_id' && present[field])
      ? []
      : [
          { field: 'advertiser_id', reason: 'is required with campaign_id, or publisher_id with ad_unit_id' },
        ]),
  ];
}

function explain(issue: z.core.$ZodIssue, line: LineFields): LineFault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((field) => ({
      field,
      reason: `is not a field of an event; there are ${eventFields.join(', ')}`,
    }));
  }
  const field = String(issue.path[0]);
  const value = line[field];
  if (value === undefined) return [{ field, reason: 'is required' }];
  const shown = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  return [{ field, reason: `${issue.message}, not ${shown}` }];
}

function sideFaults(
  line: LineFields,
  [account, entity, detail]: readonly [EventField, EventField, EventField],
): LineFault[] {
  if (line[account]) return line[entity] ? [] : [{ field: entity, reason: `is required beside ${account}` }];
  const begun = line[entity] ? entity : detail;
  return line[begun] ? [{ field: account, reason: `is required beside ${begun}` }] : [];
}

/** Whether events have a field of that name. */
export function isEventField(name: string): name is EventField {
  return eventFields.some((field) => field === name);
}

function isCalendarDay(text: string): boolean {
  const day = text.slice(0, 10);
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
