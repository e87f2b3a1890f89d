import * as z from 'zod';
import type { Catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import type { Reader } from '../../../clickhouse/reader.ts';
import { changedSince, microsecondsOf, time } from '../changed-since.ts';
import { everyDay, planReport, type ShardRouting } from '../plan.ts';
import { type ChangedDay, changedDay, compileChangedDays } from './changed-days.ts';
import { knownUntil } from './changed-until.ts';

/** The request body of the changes of a family; unknown fields are ignored. */
export const changesBody = z
  .object({
    changed_since: changedSince.meta({
      description:
        'A time as RFC 3339 writes it: the `changed_until` of the last answer, or `1970-01-01T00:00:00Z` for every day.',
      examples: ['2026-11-20T08:00:00Z'],
    }),
  })
  .describe('Since when. Unknown fields are ignored.');

/** What changed in the reports of an account. */
export const changesAnswer = z.strictObject({
  changed_until: time.meta({
    description: 'To be handed back as `changed_since` next time.',
    examples: ['2026-11-21T07:59:12.123456Z'],
  }),
  names_changed_at: z
    .string()
    .nullable()
    .meta({
      format: 'date-time',
      description:
        'By when every server showed the last change of a name in the reports, which takes a minute and a half; null if no name was ever loaded. If it is later than `changed_since`, the rows of every day may show other names: fetch them all.',
      examples: ['2026-11-03T16:20:41.070312Z'],
    }),
  days: z.array(changedDay).describe('The days that changed after `changed_since`, ascending.'),
});
export type ChangesAnswer = Readonly<z.infer<typeof changesAnswer>>;

export interface ChangesOptions {
  readonly reader: Reader;
  readonly store: Store;
  readonly catalog: Catalog;
  /** How much older than now the time is that is told as known. */
  readonly holdBackMs: number;
}

export interface ChangesQuestion {
  readonly family: string;
  readonly account: string;
  /** Valid by `changedSince`. */
  readonly since: string;
  readonly routing: ShardRouting | undefined;
}

/**
 * Which days changed. Who asks again with `changed_until` misses none, and may see one again that changed just before.
 * @throws when ClickHouse, or a shard of it, cannot be asked
 */
export async function changesSince(
  { reader, store, catalog, holdBackMs }: ChangesOptions,
  { family, account, since, routing }: ChangesQuestion,
  signal: AbortSignal,
): Promise<ChangesAnswer> {
  const known = await knownUntil(store, catalog, { account, family }, holdBackMs);
  const breakdown = { family, dimensions: [], day: true };
  const range = { start: everyDay.first, end: everyDay.last };
  const plan = planReport(catalog, breakdown, account, range, routing);
  const days = compileChangedDays(plan, microsecondsOf(since));
  return { ...known, days: await reader.rows<ChangedDay>(days, { signal }) };
}
