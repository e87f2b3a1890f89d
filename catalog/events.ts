/**
 * The fields of an event, beside the families that report them: what a record may say, which of it is counted, and the
 * event types that are another way to write a count. Data only.
 */

/** How the value of a field is read. */
export type FieldKind = 'text' | 'time' | 'type' | 'count' | 'money' | 'flag';

export interface FieldSpec {
  readonly kind: FieldKind;
  /** Characters; of text only. */
  readonly maxChars?: number;
  /** The least and the greatest; of counts only. */
  readonly range?: readonly [0 | 1, number];
  /** Of a count that events carry: the event type that stands for `quantity` of it. */
  readonly eventType?: string;
}

/** So many rows of the greatest count add up without an overflow that no store will hold them. */
const countRange = [0, 999_999_999_999_999] as const;

/**
 * In the order of the table in docs/loading.md. What they mean together (a side needs its account, an event type or counts) is in
 * ingest/event/rules.ts; that a constraint of `events` says the same is checked by a test.
 */
const specs = {
  event_id: { kind: 'text', maxChars: 64 },
  event_time: { kind: 'time' },
  event_type: { kind: 'type' },
  quantity: { kind: 'count', range: [1, 4_294_967_295] },
  ad_requests: { kind: 'count', range: countRange, eventType: 'ad_request' },
  impressions: { kind: 'count', range: countRange, eventType: 'impression' },
  referrals: { kind: 'count', range: countRange, eventType: 'referral' },
  conversions: { kind: 'count', range: countRange, eventType: 'conversion' },
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
  reason: { kind: 'text', maxChars: 64 },
} as const satisfies Readonly<Record<string, FieldSpec>>;

type Specs = typeof specs;
export type EventField = keyof Specs;
/** A count that an event carries. */
export type Count = {
  [F in EventField]: Specs[F] extends { readonly eventType: string } ? F : never;
}[EventField];
/** An amount of money that an event carries. */
export type Money = {
  [F in EventField]: Specs[F] extends { readonly kind: 'money' } ? F : never;
}[EventField];
/** What is summed: a column of `events`. */
export type Amount = Count | Money;
/** A way to write `quantity` of a count; `revenue` is money without a count. */
export type EventType = Specs[Count]['eventType'] | 'revenue';

export const fieldSpecs: Readonly<Record<EventField, FieldSpec>> = specs;
export const eventFields = Object.keys(specs) as readonly EventField[];
/** Fields that carry a count themselves. A record has some of them, or an event type. */
export const countFields = eventFields.filter((name): name is Count => 'eventType' in specs[name]);
export const eventTypeOf = Object.fromEntries(
  countFields.map((count) => [count, specs[count].eventType]),
) as Readonly<Record<Count, EventType>>;
export const eventTypes: readonly EventType[] = [...Object.values(eventTypeOf), 'revenue'];

/** Columns of `events` that come from the record, in the order of the table. */
export const eventColumns = eventFields.filter((name) => name !== 'event_type' && name !== 'quantity');

/** Whether events have a field of that name. */
export function isEventField(name: string): name is EventField {
  return Object.hasOwn(specs, name);
}
