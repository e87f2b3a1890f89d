import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';
import { rollups } from '../../clickhouse/rollups.ts';

/** Chunks, as SQL that can stand behind IN, with its parameters. */
export interface ChunkSet {
  readonly sql: string;
  readonly params: Readonly<Record<string, readonly string[]>>;
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

/**
 * The first day of a month that a rebuild would empty of what other chunks brought, because their raw events have
 * been dropped; undefined if there is none.
 */
export async function droppedDay(
  store: Store,
  { from }: DayRange,
  chunks: ChunkSet,
): Promise<string | undefined> {
  const inMonth = 'toYYYYMM(day) = toYYYYMM({from:Date})';
  const reported = rollups(catalog).map(({ table }) => `SELECT DISTINCT day FROM ${table} WHERE ${inMonth}`);
  const ofOthers = (table: string) =>
    `SELECT DISTINCT day FROM ${table} WHERE ${inMonth} AND chunk NOT IN ${chunks.sql}`;
  const [dropped] = await select<{ day: string }>(
    store,
    `SELECT toString(d.day) AS day FROM (${reported.join(' UNION DISTINCT ')}) AS d
     WHERE d.day NOT IN (${ofOthers('events')})
       AND (d.day NOT IN (${daysOf(chunks)}) OR d.day IN (${ofOthers('chunk_days')}))
     ORDER BY d.day LIMIT 1`,
    { from, ...chunks.params },
  );
  return dropped?.day;
}
