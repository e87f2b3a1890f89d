import { countFields, type EventField } from '../../catalog/events.ts';
import type { Rule } from './values.ts';

type FieldRule = Rule & { readonly field: EventField };

/**
 * What the fields of a record must fulfil together.
 * @param given the SQL condition under which a field has a value
 */
export function sideRules(given: (field: EventField) => string): FieldRule[] {
  const counts = countFields.map(given).join(' + ');
  return [
    ...side('advertiser_id', 'campaign_id', 'creative_id'),
    ...side('publisher_id', 'ad_unit_id', 'site_id'),
    {
      field: 'advertiser_id',
      broken:
        "(t_advertiser_id != '') + (t_campaign_id != '') + (t_creative_id != '') + (t_publisher_id != '') + (t_ad_unit_id != '') + (t_site_id != '') = 0",
      reason: 'is required with campaign_id, or publisher_id with ad_unit_id',
    },
    {
      field: 'event_type',
      broken: `t_event_type = '' AND ${counts} = 0`,
      reason: `is required, or a count: ${countFields.join(', ')}`,
    },
    {
      field: 'event_type',
      broken: `t_event_type != '' AND ${counts} > 0`,
      reason: `and counts (${countFields.join(', ')}) say the same twice: leave one of them out`,
    },
    {
      field: 'quantity',
      broken: `t_event_type = '' AND ${given('quantity')}`,
      reason: 'needs an event_type that it counts',
    },
  ];
}

/** An entity and what is below it need their account, and an account its entity. */
function side(account: EventField, entity: EventField, detail: EventField): FieldRule[] {
  return [
    {
      field: entity,
      broken: `t_${account} != '' AND t_${entity} = ''`,
      reason: `is required beside ${account}`,
    },
    ...[entity, detail].map((below) => ({
      field: account,
      broken: `t_${account} = '' AND t_${below} != ''${below === detail ? ` AND t_${entity} = ''` : ''}`,
      reason: `is required beside ${below}`,
    })),
  ];
}
