import { rollupTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';

const families = Object.keys(catalog.families);

/** The columns of `confirmations` that say when a confirmation last made a day confirmed that was not, by family. */
export const newlyConfirmedColumns = families.map((family) => `${family}_changed_at`);

/**
 * SQL of their values: now, for the days that a confirmation of `time` makes confirmed in that family, else the epoch.
 * It is the time at which the row is made, not that of a statement that waits for its input.
 * @param key SQL of account and day of the row
 * @param time SQL of the time of the confirmation
 * @param where SQL that says which accounts and days there can be, to read no more
 */
export function newlyConfirmed(key: string, time: string, where = '1'): string[] {
  return families.map((family) => {
    const days = `
      SELECT account_id, day FROM (
        SELECT account_id, day, r.unconfirmed_at AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at
        FROM ${rollupTable(family, [])} AS r WHERE ${where}
        UNION ALL
        SELECT account_id, day, toDateTime64(0, 6, 'UTC') AS unconfirmed_at, c.confirmed_at AS confirmed_at
        FROM confirmations AS c WHERE ${where})
      GROUP BY account_id, day
      HAVING max(unconfirmed_at) > max(confirmed_at) AND max(unconfirmed_at) <= ${time}`;
    return `if(${key} IN (${days}), nowInBlock64(6, 'UTC'), toDateTime64(0, 6, 'UTC'))`;
  });
}
