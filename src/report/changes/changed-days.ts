import * as z from 'zod';
import { changesTable, rollupTable } from '../../../catalog/breakdowns.ts';
import type { ReadStatement } from '../../../clickhouse/reader.ts';
import { time } from '../changed-since.ts';
import { readSettings } from '../compile.ts';
import { rfc3339, timeOf } from '../day-changed.ts';
import { dayParameters, owned } from '../owned.ts';
import type { Plan } from '../plan.ts';

/** A day whose rows, or whose confirmation, changed after the time that a caller already knows. */
export const changedDay = z.strictObject({
  day: z.string().meta({ format: 'date', description: 'The day.' }),
  changed_at: time.meta({ description: 'When it last changed.', examples: ['2026-11-20T22:14:03.512809Z'] }),
  unconfirmed: z.boolean().describe('Whether it has money that is not confirmed.'),
});
export type ChangedDay = Readonly<z.infer<typeof changedDay>>;

const epoch = "toDateTime64(0, 6, 'UTC')";

/**
 * The statement that lists the days of an account that changed after `since`, ascending. Days whose last event was taken
 * back are among them.
 * @param since microseconds since 1970
 */
export function compileChangedDays(plan: Plan, since: string): ReadStatement {
  const { family } = plan.breakdown;
  const each = (changed: string, unconfirmed: string, confirmed: string) =>
    `SELECT day, ${changed} AS changed, ${unconfirmed} AS unconfirmed_at, ${confirmed} AS confirmed_at`;
  const query = [
    `SELECT day, ${rfc3339('changed_at')} AS changed_at, unconfirmed FROM (`,
    'SELECT day, max(changed) AS changed_at, toBool(max(unconfirmed_at) > max(confirmed_at)) AS unconfirmed FROM (',
    each('d.changed_at', epoch, epoch),
    `FROM ${changesTable(family)} AS d WHERE ${owned}`,
    'UNION ALL',
    each(`c.${family}_changed_at`, epoch, 'c.confirmed_at'),
    `FROM confirmations AS c WHERE ${owned}`,
    'UNION ALL',
    each('r.changed_at', 'r.unconfirmed_at', epoch),
    `FROM ${rollupTable(family, [])} AS r WHERE ${owned})`,
    `GROUP BY day HAVING changed_at > ${timeOf('since')}) ORDER BY day`,
  ].join('\n');
  return {
    query,
    params: { ...dayParameters(plan), since },
    settings: { max_threads: 1, ...readSettings(plan, { [changesTable(family)]: 'account_id' }) },
  };
}
