import { rollupTable } from '../../catalog/breakdowns.ts';
import type { NameSource } from '../../catalog/catalog.ts';
import { groupingDimensions } from './columns.ts';
import { timeOf } from './day-changed.ts';
import { type DaysRead, ofRange, owned, ownedOn } from './owned.ts';
import type { Past, Plan } from './plan.ts';

/** SQL of the moment that a report is as of. */
const moment = timeOf('moment');
/** Days that did not change since the moment are read from the rollups, which have the rows of then. */
const isChanged = 'day IN {changed_days:Array(Date)}';
const counted = `loaded_at <= ${moment}`;
/** What came since a time. */
export const cameSince = (time: string): string => `loaded_at > ${time}`;
/** What counted at a time and was taken away since. */
export const leftSince = (time: string): string => `came_by <= ${time} AND left_at > ${time}`;

/**
 * The rows of a rollup as they were at a moment, as a subquery: those of today where nothing changed since, else the events
 * that had come by then, with those that were taken away later.
 */
export function rowsOfThen({ catalog, breakdown, family, reads }: Plan, days: DaysRead): string {
  const keys = groupingDimensions(catalog, { ...breakdown, dimensions: reads }).map(({ key }) => key);
  const measures = Object.entries(family.measures);
  const today = measures.map(([name]) => `t.${name} AS ${name}`);
  const ofEvents = measures.map(([name, { sumOf }]) => `e.${sumOf} AS ${name}`);
  return [
    `SELECT ${['account_id', 'day', ...keys, ...today].join(', ')}`,
    `FROM ${rollupTable(breakdown.family, reads)} AS t WHERE ${ownedOn(days)} AND NOT ${isChanged}`,
    ...eventsOfThen(ownedOn(days, family.owner), [
      `${family.owner} AS account_id`,
      'day',
      ...keys,
      ...ofEvents,
    ]),
  ].join('\n');
}

/** When each day was last unconfirmed and confirmed, at a moment: lines of a UNION. */
export function unconfirmedThen({ breakdown, family }: Plan, { changed }: Past): string {
  const { owner, money } = family;
  const epoch = "toDateTime64(0, 6, 'UTC')";
  const unconfirmed = `if(e.${money} != 0 AND NOT e.confirmed, e.loaded_at, ${epoch}) AS unconfirmed_at`;
  return [
    `SELECT day, r.unconfirmed_at AS unconfirmed_at, ${epoch} AS confirmed_at`,
    `FROM ${rollupTable(breakdown.family, [])} AS r WHERE ${owned} AND NOT ${isChanged}`,
    ...(changed.length > 0
      ? eventsOfThen(ownedOn(ofRange, owner), ['day', unconfirmed, `${epoch} AS confirmed_at`])
      : []),
    'UNION ALL',
    `SELECT day, ${epoch} AS unconfirmed_at, c.confirmed_at AS confirmed_at`,
    `FROM past_confirmations AS c WHERE ${owned} AND c.made_at <= ${moment}`,
  ].join('\n');
}

function eventsOfThen(own: string, values: readonly string[]): string[] {
  return [
    ['events', counted],
    ['past_events', leftSince(moment)],
  ].flatMap(([table, then]) => [
    'UNION ALL',
    `SELECT ${values.join(', ')} FROM ${table} AS e PREWHERE ${own} AND ${isChanged} AND ${then}`,
  ]);
}

/** SQL of the name that an id had at a moment. @param otherwise SQL of what an id without one shows */
export function nameThen(key: string, { dictionary }: NameSource, otherwise: string): string {
  const names = [
    '(SELECT arraySort(groupArray((n.id, n.name))) FROM (',
    'SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h',
    `WHERE account_id = {account:String} AND dictionary = '${dictionary}' AND h.changed_at <= ${moment} GROUP BY id) AS n)`,
  ].join(' ');
  return `transform(${key}, tupleElement(${names}, 1), tupleElement(${names}, 2), ${otherwise})`;
}

/** The tables that are read beside those of today, each with the column that holds the account. */
export function tablesOfThen(owner: string): Record<string, string> {
  return { events: owner, past_events: owner, past_names: 'account_id', past_confirmations: 'account_id' };
}
