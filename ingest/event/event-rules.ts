import { eventTypes } from '../../catalog/catalog.ts';
import {
  confirmedPattern,
  type EventField,
  eventFields,
  eventTimePattern,
  moneyPattern,
  quantityPattern,
  requiredFields,
} from './event-insert.ts';

/** A field of an event line as text, whatever the format; absent and empty mean the same. */
export type LineFields = Readonly<Record<string, string | undefined>>;

/** A rule that a line breaks. */
export interface LineFault {
  /** Empty when the line as a whole cannot be read. */
  readonly field: string;
  readonly reason: string;
}

/** What the text of a field must fulfil, and how that is said after the name of the field. */
type Rule = readonly [fits: (text: string) => boolean, reason: string];

const required = 'is required';

const atMost = (most: number): Rule => [
  // Code units are never fewer than characters.
  (text) => text.length <= most || [...text].length <= most,
  `must be at most ${most} characters`,
];
const like = (pattern: string, reason: string): Rule => {
  const wanted = new RegExp(pattern);
  return [(text) => wanted.test(text), reason];
};
const money = like(moneyPattern, 'must be a decimal with at most 12 digits before the point and 6 after it');
const types: ReadonlySet<string> = new Set(eventTypes);
const wholeNumber = 'must be a whole number from 1 to 4294967295';

/**
 * The rules of an event line, the first broken one of a field is told. The engine enforces the same; these say
 * them to a person. Every line beside a bad one is judged, so they are plain functions.
 */
const rules: Readonly<Record<EventField, readonly Rule[]>> = {
  event_id: [atMost(64)],
  event_time: [
    like(
      eventTimePattern,
      'must be a date-time such as 2026-01-31T12:00:00.000Z, 2026-01-31T12:00:00+02:00 or 2026-01-31 12:00:00 (UTC)',
    ),
    [isCalendarDay, 'must be a day that exists'],
    [(text) => text >= '1971' && text < '2149-06-05', 'must be between 1971 and 2149'],
  ],
  event_type: [[(text) => types.has(text), `must be one of ${eventTypes.join(', ')}`]],
  advertiser_id: [atMost(128)],
  campaign_id: [atMost(128)],
  creative_id: [atMost(128)],
  publisher_id: [atMost(128)],
  ad_unit_id: [atMost(128)],
  site_id: [atMost(128)],
  device: [atMost(32)],
  quantity: [
    like(quantityPattern, wholeNumber),
    [(text) => Number(text) >= 1 && Number(text) <= 4294967295, wholeNumber],
  ],
  spend: [money],
  revenue: [money],
  confirmed: [like(confirmedPattern, 'must be true or false')],
};
const fields = new Set<string>(eventFields);

/** Every rule that a line breaks; none when it is an event. @param ignoreUnknown a field no event has is no fault */
export function faultsOf(line: LineFields, ignoreUnknown = false): LineFault[] {
  const faults: LineFault[] = [];
  for (const field of eventFields) {
    const text = line[field];
    if (text) {
      const broken = rules[field].find(([fits]) => !fits(text));
      if (broken) faults.push({ field, reason: `${broken[1]}, not ${shown(text)}` });
    } else if (requiredFields.includes(field)) faults.push({ field, reason: required });
  }
  if (!ignoreUnknown) {
    for (const field of Object.keys(line)) {
      if (fields.has(field)) continue;
      faults.push({ field, reason: `is not a field of an event; there are ${eventFields.join(', ')}` });
    }
  }
  sideFaults(faults, line, 'advertiser_id', 'campaign_id', 'creative_id');
  sideFaults(faults, line, 'publisher_id', 'ad_unit_id', 'site_id');
  const ofNobody = !eventFields.some((field) => field.endsWith('_id') && field !== 'event_id' && line[field]);
  if (ofNobody) {
    faults.push({
      field: 'advertiser_id',
      reason: 'is required with campaign_id, or publisher_id with ad_unit_id',
    });
  }
  return faults;
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function sideFaults(
  faults: LineFault[],
  line: LineFields,
  account: EventField,
  entity: EventField,
  detail: EventField,
): void {
  if (line[account]) {
    if (!line[entity]) faults.push({ field: entity, reason: `is required beside ${account}` });
    return;
  }
  const begun = line[entity] ? entity : detail;
  if (line[begun]) faults.push({ field: account, reason: `is required beside ${begun}` });
}

/** Whether events have a field of that name. */
export function isEventField(name: string): name is EventField {
  return fields.has(name);
}

function isCalendarDay(text: string): boolean {
  // Every month has 28 days.
  if (text.slice(8, 10) <= '28') return true;
  const day = text.slice(0, 10);
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
