import { countOfEventType } from '../../catalog/catalog.ts';

/** How the value of a field is read. */
export type FieldKind = 'text' | 'time' | 'type' | 'count' | 'money' | 'flag';

export interface FieldSpec {
  readonly kind: FieldKind;
  /** Characters; of text only. */
  readonly maxChars?: number;
  /** The least and the greatest; of counts only. */
  readonly range?: readonly [number, number];
}

/** So many rows of the greatest count add up without an overflow that no store will hold them. */
const countRange = [0, 999_999_999_999_999] as const;

/**
 * The fields of a record, in the order of the README's table. What they mean together (a side needs its account, an
 * event type or counts) is in rules.ts; that a constraint of `events` says the same is checked by a test.
 */
const specs = {
  event_id: { kind: 'text', maxChars: 64 },
  event_time: { kind: 'time' },
  event_type: { kind: 'type' },
  quantity: { kind: 'count', range: [1, 4_294_967_295] },
  ad_requests: { kind: 'count', range: countRange },
  impressions: { kind: 'count', range: countRange },
  referrals: { kind: 'count', range: countRange },
  conversions: { kind: 'count', range: countRange },
  advertiser_id: { kind: 'text', maxChars: 128 },
  campaign_id: { kind: 'text', maxChars: 128 },
  creative_id: { kind: 'text', maxChars: 128 },
  publisher_id: { kind: 'text', maxChars: 128 },
  ad_unit_id: { kind: 'text', maxChars: 128 },
  site_id: { kind: 'text', maxChars: 128 },
  device: { kind: 'text', maxChars: 32 },
  spend: { kind: 'money' },
  revenue: { kind: 'money' },
  confirmed: { kind: 'flag' },
} as const satisfies Readonly<Record<string, FieldSpec>>;

export type EventField = keyof typeof specs;
export const fieldSpecs: Readonly<Record<EventField, FieldSpec>> = specs;
export const eventFields = Object.keys(specs) as readonly EventField[];

export const eventTypes = Object.keys(countOfEventType) as readonly (keyof typeof countOfEventType)[];
/** Fields that carry a count themselves, of which a record has some or an event type. */
export const countFields = ['ad_requests', 'impressions', 'referrals', 'conversions'] as const;

/** Columns of `events` that come from the record, in the order of the table. */
export const eventColumns = eventFields.filter((name) => name !== 'event_type' && name !== 'quantity');

/** Whether events have a field of that name. */
export function isEventField(name: string): name is EventField {
  return Object.hasOwn(specs, name);
}
