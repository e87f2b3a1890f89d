import { changesTable, rollupTable } from '../../catalog/breakdowns.ts';
import { owned } from './owned.ts';

/** SQL of a time of ClickHouse from a parameter that has it in microseconds since 1970. */
export const timeOf = (parameter: string) => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;

/** SQL of a time as RFC 3339 writes it. */
export const rfc3339 = (time: string): string => `replaceOne(toString(${time}), ' ', 'T') || 'Z'`;

/** Clocks of servers differ, and a change is seen a little after its time. To take a day for changed does no harm. */
export const safelyBefore = (time: string): string => `${time} - INTERVAL 1 MINUTE`;

/** The days whose rows changed since a time, SQL that may name `day`. */
const changedRows = (family: string, since: string): string[] => [
  `SELECT day FROM ${changesTable(family)} AS d WHERE ${owned} AND d.changed_at > ${since}`,
  `SELECT day FROM ${rollupTable(family, [])} AS a WHERE ${owned} AND a.changed_at > ${since}`,
];

/** SQL of whether rows of a day changed since a time, SQL that may name `day`. */
export const rowsChanged = (family: string, since: string): string =>
  `day GLOBAL IN (${changedRows(family, since).join(' UNION ALL ')})`;

/** SQL of whether the day of a row has changed after the parameter `changed_since`. */
export function dayChanged(family: string): string {
  const since = timeOf('changed_since');
  const confirmed = `SELECT day FROM confirmations AS c WHERE ${owned} AND c.${family}_changed_at > ${since}`;
  return `day GLOBAL IN (${[...changedRows(family, since), confirmed].join(' UNION ALL ')})`;
}
