import * as z from 'zod';
import { monthName, monthOf } from '../../clickhouse/months.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { time } from '../report/changed-since.ts';
import { ownSettings } from '../report/compile.ts';
import { rfc3339 } from '../report/day-changed.ts';
import { exactBody, inOrder, inverted, rangeFields } from '../report/option-schema.ts';
import type { ShardRouting } from '../report/plan.ts';
import type { Month } from './month.ts';

/** What an account may know of its closes. */

/** The request body of a list of closes. */
export const closesBody = exactBody(rangeFields, 'The months that these days are of.').refine(
  inOrder,
  inverted,
);

const revision = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({ examples: ['4c2b3f0f6f0f6d0f8a7c7e0c5f7c1f3f2a9f5d1c0b8e4a6d2c1f9e7b5a3d1c0f'] });
export const closesAnswer = z.strictObject({
  closes: z
    .array(
      z.strictObject({
        month: z
          .string()
          .regex(/^\d{4}-\d{2}$/)
          .meta({ examples: ['2026-10'] }),
        revision: revision.describe('Its name: the sha256 of its rows.'),
        previous: revision.nullable().meta({ description: 'What was closed before it.', examples: [null] }),
        closed_at: time.describe('When it was closed.'),
        unconfirmed_revenue_dates: z
          .array(z.string().meta({ format: 'date' }))
          .describe('The days whose money was unconfirmed then.'),
      }),
    )
    .describe('The closes of these months, newest first: of each month the first is what `closed` means.'),
});

type AccountCloses = z.infer<typeof closesAnswer>;

interface Whose {
  readonly account: string;
  readonly routing: ShardRouting | undefined;
}

/** The closes of the months of a range, with what was unconfirmed in a family. */
export async function accountCloses(
  reader: Reader,
  { family, ...whose }: Whose & { readonly family: string },
  { start_time, end_time }: z.infer<typeof closesBody>,
  signal: AbortSignal,
): Promise<AccountCloses> {
  const statement = {
    query: [
      `SELECT month, c.revision AS revision, previous, ${rfc3339('c.closed_at')} AS closed_at,`,
      'arrayMap(u -> u.2, arrayFilter(u -> u.1 = {family:String}, unconfirmed)) AS days FROM closes AS c',
      'WHERE account_id = {account:String} AND month BETWEEN {first:UInt32} AND {last:UInt32} ORDER BY c.closed_at DESC',
    ].join('\n'),
    params: { account: whose.account, family, first: `${monthOf(start_time)}`, last: `${monthOf(end_time)}` },
    settings: closesSettings(whose),
  };
  const found = await reader.rows<{
    month: Month;
    revision: string;
    previous: string;
    closed_at: string;
    days: string[];
  }>(statement, { signal });
  return {
    closes: found.map(({ month, revision, previous, closed_at, days }) => ({
      month: monthName(month),
      revision,
      previous: previous || null,
      closed_at,
      unconfirmed_revenue_dates: days,
    })),
  };
}

/** The manifest of the last close of a revision; undefined where the account has no such close. */
export async function accountManifest(
  reader: Reader,
  whose: Whose,
  revision: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const statement = {
    query: [
      'SELECT manifest FROM closes AS c WHERE account_id = {account:String} AND c.revision = {revision:String}',
      'ORDER BY c.closed_at DESC LIMIT 1',
    ].join('\n'),
    params: { account: whose.account, revision },
    settings: closesSettings(whose),
  };
  const [found] = await reader.rows<{ manifest: string }>(statement, { signal });
  return found?.manifest;
}

const closesSettings = (whose: Whose) => ({
  max_threads: 1,
  ...ownSettings(whose, { closes: 'account_id' }),
});
