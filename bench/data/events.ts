import {
  countFields,
  type EventField,
  eventColumns,
  eventFields,
  eventTypeOf,
} from '../../catalog/events.ts';
import { network, pairs } from './network.ts';

/** How busy each day of the week is; the first day of the network is a Wednesday. */
const weekdays = [1.08, 1.06, 1, 0.85, 0.88, 1.05, 1.08];
/** How busy each hour of the day is. */
const hours = [2, 1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 5, 5, 5, 4, 4, 4, 5, 6, 7, 8, 7, 5, 3];

export interface Events {
  readonly events: number;
  readonly seed: number;
}

/** How many events a week has, and the offset in it at which each day starts. Events are numbered as they arrive. */
function calendar(events: number): { perWeek: number; dayStarts: number[] } {
  const total = weekdays.reduce((sum, weight) => sum + weight);
  const shares = weekdays.map((weight) => weight / total);
  const weeks = Math.floor(network.days / 7);
  const perWeek = Math.max(7, Math.floor(events / (weeks + (shares[0] ?? 0))));
  let share = 0;
  const dayStarts = shares.map((of) => {
    const start = Math.round(share * perWeek);
    share += of;
    return start;
  });
  return { perWeek, dayStarts };
}

/** Ranges of event numbers to insert at a time: whole weeks, of at most `maxEvents` unless a week has more. */
export function weekSlices({ events }: Events, maxEvents: number): { from: number; count: number }[] {
  const { perWeek } = calendar(events);
  const step = perWeek > maxEvents ? maxEvents : Math.floor(maxEvents / perWeek) * perWeek;
  return Array.from({ length: Math.ceil(events / step) }, (_, n) => ({
    from: n * step,
    count: Math.min(step, events - n * step),
  }));
}

/**
 * A SELECT of `count` events from number `from` on, in the order they arrive. Event n depends only on n, the seed and
 * the number of events.
 *
 * At the start of each day three of four events are impressions that cover every key once. The rest is skewed: half
 * belongs to the large accounts, and the small ones share the other half by Zipf's law, as do the creatives and
 * sites. One conversion in three is late, by up to two weeks.
 */
export function selectEvents({ events, seed }: Events, from: number, count: number): string {
  const { perWeek, dayStarts } = calendar(events);
  const uniform = (salt: number) => `(cityHash64(number, ${seed}, ${salt}) % 1000003 / 1000003)`;
  const weekday = (values: readonly number[]) =>
    `multiIf(${values
      .slice(1)
      .map((_, n) => `place < ${dayStarts[n + 1]}, ${values[n]}`)
      .join(', ')}, ${values.at(-1)})`;
  const hourTable = `[${hours.flatMap((weight, hour) => Array<number>(weight).fill(hour)).join(', ')}]`;
  const hourTotal = hours.reduce((sum, weight) => sum + weight);
  const { devices, largeParts, smallParts, smallAccounts } = network;
  const pair = (salt: number) =>
    `if(covers, intDiv(turn, ${devices.length}) % ${pairs.all}, if(${uniform(salt)} < 0.5,
      toUInt32(pow(${uniform(salt + 1)}, 2) * ${pairs.large}),
      ${pairs.large} + toUInt32(pow(${uniform(salt + 1)}, 3) * ${smallAccounts * smallParts})))`;
  // 7 and the number of pairs have no common factor: a few events are already spread over the large account.
  const spread = (name: string) => `(${name} * 7) % ${pairs.large}`;
  const side = (name: string, account: string, entity: string, part: string) => `
    if(${name} < ${pairs.large}, 0, 1 + intDiv(${name} - ${pairs.large}, ${smallParts})) AS ${name}_account,
    if(${name}_account = 0, ${spread(name)}, ${name} % ${smallParts}) AS ${name}_n,
    concat('${account}-', toString(${name}_account)) AS ${name}_owner,
    concat('${entity}-', toString(${name}_account), '-', toString(intDiv(${name}_n, ${largeParts}))) AS ${name}_entity,
    concat('${part}-', toString(${name}_account), '-', toString(${name}_n)) AS ${name}_part`;
  return `
  WITH
    toUInt32(intDiv(number, ${perWeek})) AS week,
    toUInt32(number % ${perWeek}) AS place,
    least(week * 7 + ${weekday([0, 1, 2, 3, 4, 5, 6])}, ${network.days - 1}) AS arrived,
    toUInt32(place - ${weekday(dayStarts)}) AS nth,
    toUInt32(intDiv(nth, 4) * 3 + nth % 4) AS turn,
    nth % 4 != 3 AND turn < ${pairs.all * devices.length} AS covers,
    ${uniform(1)} AS kind,
    multiIf(covers, 'impression', kind < 0.34, 'ad_request', kind < 0.86, 'impression', kind < 0.975, 'referral',
      kind < 0.998, 'conversion', 'revenue') AS type,
    if(type = 'conversion' AND ${uniform(2)} < 0.33, least(arrived, 1 + toUInt32(pow(${uniform(3)}, 2) * 14)), 0) AS late,
    toDateTime64(toDate('${network.firstDay}') + (arrived - late), 3, 'UTC')
      + toIntervalSecond(${hourTable}[1 + cityHash64(number, ${seed}, 4) % ${hourTotal}] * 3600 + cityHash64(number, ${seed}, 5) % 3600) AS time,
    ${pair(6)} AS sold,${side('sold', 'advertiser', 'campaign', 'creative')},
    ${pair(8)} AS shown,${side('shown', 'publisher', 'unit', 'site')},
    multiIf(type = 'impression', 1 + ${uniform(10)} * 9, type = 'revenue', 500 - ${uniform(10)} * 1000, 0) / 1000 AS price
  SELECT
    concat('e', toString(${seed}), '-', toString(number)) AS event_id, time AS event_time, type AS event_type,
    if(type = 'ad_request', '', sold_owner) AS advertiser_id, if(type = 'ad_request', '', sold_entity) AS campaign_id,
    if(type = 'ad_request', '', sold_part) AS creative_id,
    shown_owner AS publisher_id, shown_entity AS ad_unit_id, shown_part AS site_id,
    ['${devices.join("', '")}'][1 + if(covers, turn, toUInt32(pow(${uniform(11)}, 1.6) * ${devices.length})) % ${devices.length}] AS device,
    toUInt32(1) AS quantity, toDecimal64(price, 6) AS spend, toDecimal64(price * 0.68, 6) AS revenue,
    ${uniform(12)} < 0.9 AS confirmed
  FROM numbers(${from}, ${count})`;
}

const isMade = (name: EventField) => name !== 'reason';

/** The columns of {@link selectEvents}: one event type, and how many, instead of counts. */
export const singleFields = eventFields.filter(
  (name) => isMade(name) && !countFields.some((count) => count === name),
);

/** The counts of a record with {@link singleFields}. */
export const countOf: Readonly<Record<string, string>> = Object.fromEntries(
  countFields.map((count) => [count, `if(event_type = '${eventTypeOf[count]}', quantity, 0)`]),
);

/** An INSERT of records with {@link singleFields}, as one would write it by hand. @param from what stands after FROM */
export function insertSingles(from: string): string {
  const columns = eventColumns.filter(isMade);
  const values = columns.map((name) => countOf[name] ?? name);
  return `INSERT INTO events (${columns.join(', ')}) SELECT ${values.join(', ')} FROM ${from}`;
}
