import { changesTable, rollupTable } from '../../catalog/breakdowns.ts';

/** SQL of a time of ClickHouse from a parameter that has it in microseconds since 1970. */
export const timeOf = (parameter: string) => `fromUnixTimestamp64Micro({${parameter}:Int64}, 'UTC')`;

/**
 * SQL of whether the day of a row has changed after the parameter `changed_since`.
 * @param owned SQL that says whose days, and in what range
 */
export function dayChanged(family: string, owned: string): string {
  const days = [
    `SELECT day FROM ${changesTable(family)} AS d WHERE ${owned} AND d.changed_at > ${timeOf('changed_since')}`,
    `SELECT day FROM confirmations AS c WHERE ${owned} AND c.${family}_changed_at > ${timeOf('changed_since')}`,
    `SELECT day FROM ${rollupTable(family, [])} AS a WHERE ${owned} AND a.changed_at > ${timeOf('changed_since')}`,
  ];
  return `day GLOBAL IN (${days.join(' UNION ALL ')})`;
}
