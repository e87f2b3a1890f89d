import { type Amount, countFields } from '../../catalog/events.ts';
import { type Store, selectOne } from '../../clickhouse/client.ts';
import type { Leaving } from '../history/past-events.ts';
import { isHeldEvent } from './target.ts';

/** How a sum moves. Values are exact, as text. */
export interface Change {
  readonly what: 'events' | Amount;
  readonly before: string;
  readonly after: string;
  /** Of what was there before; infinite where that was nothing. */
  readonly percent: number;
}

const amounts: readonly Amount[] = [...countFields, 'spend', 'revenue'];

/** How far the sums of the events move that leave and come. */
export async function compareTotals(store: Store, { sql, params }: Leaving): Promise<Change[]> {
  const sums = [
    'toString(count()) AS events',
    ...amounts.map((name) => `toString(sum(t.${name})) AS ${name}`),
  ];
  const totals = (from: string) => `SELECT ${sums.join(', ')} FROM ${from}`;
  const ask = async (query: string) => {
    return selectOne<Record<Change['what'], string>>(store, query, params);
  };
  const before = await ask(totals(`events AS t WHERE ${sql()}`));
  const after = await ask(
    totals(`(SELECT * FROM incoming_staging WHERE ${isHeldEvent} LIMIT 1 BY chunk, line) AS t`),
  );
  return (['events', ...amounts] as const).map((what) => ({
    what,
    before: before[what],
    after: after[what],
    percent: percentOf(before[what], after[what]),
  }));
}

function percentOf(before: string, after: string): number {
  if (before === after) return 0;
  return Number(before) === 0
    ? Number.POSITIVE_INFINITY
    : (100 * (Number(after) - Number(before))) / Math.abs(Number(before));
}
