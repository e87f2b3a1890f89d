import { type Store, select } from '../../clickhouse/client.ts';
import { isPruned, prunedMonths } from '../../clickhouse/consistency/fold-events.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';

/** Chunks, as SQL that can stand behind IN, with its parameters. */
export interface ChunkSet {
  readonly sql: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export const namedChunks = (chunks: readonly string[]): ChunkSet => ({
  sql: '{chunks:Array(String)}',
  params: { chunks },
});

/** Days on which the chunks have events, or had before they were withdrawn. */
const daysOf = ({ sql }: ChunkSet): string => `
  SELECT day FROM chunk_days WHERE chunk IN ${sql}
  UNION DISTINCT
  SELECT day FROM withdrawn_chunks WHERE chunk IN ${sql} AND day > toDate(0)`;

/** The months in which the chunks have events, or had: of each the first and the last day. */
export function monthsOf(store: Store, chunks: ChunkSet): Promise<DayRange[]> {
  return select<DayRange>(
    store,
    `SELECT toString(min(d.day)) AS from, toString(max(d.day)) AS to FROM (${daysOf(chunks)}) AS d
     GROUP BY toYYYYMM(d.day) ORDER BY toYYYYMM(d.day)`,
    chunks.params,
  );
}

/** The first month in which events of the chunks have been pruned, `yyyy-mm`; undefined if they are all there. */
export async function prunedMonthOf(store: Store, { sql, params }: ChunkSet): Promise<string | undefined> {
  const [found] = await select<{ first: string }>(
    store,
    `WITH ${prunedMonths}
     SELECT toString(min(day)) AS first FROM chunk_days WHERE chunk IN ${sql} AND ${isPruned} HAVING count() > 0`,
    params,
  );
  return found?.first.slice(0, 7);
}
