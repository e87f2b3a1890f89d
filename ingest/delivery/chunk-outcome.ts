import { changesTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { fileOrder } from '../event/record-place.ts';
import {
  type ChunkBalance,
  type Ledger,
  recordChunk,
  repeated,
  type SentChunk,
  tell,
} from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { dismissedRejects, type RejectedRow } from '../rejects/rejected-rows.ts';
import { inFuture, isEarly, type OddDays } from './odd-days.ts';

/** Rejected rows that are read back to be shown; all of them are kept. */
export const shownRejects = 10;

/** A chunk that ClickHouse has acknowledged, and what became of its records. */
export interface DeliveredChunk extends ChunkBalance {
  readonly chunk: SentChunk;
}

/** Records that a chunk is loaded, with its balance. */
export async function markLoaded(
  ledger: Ledger,
  load: Load,
  { chunk, ...counts }: DeliveredChunk,
): Promise<void> {
  await recordChunk(ledger, load, chunk, 'loaded_at', counts);
}

/** Records that chunks are about to be withdrawn, and on which days some of them had arrived, or are held back. */
export async function markWithdrawn(ledger: Ledger, load: Load, chunks: readonly string[]): Promise<void> {
  if (chunks.length === 0) return;
  const query = `
    INSERT INTO withdrawn_chunks (chunk, day, load_id)
    SELECT arrayJoin({chunks:Array(String)}), toDate(0), {loadId:String}
    UNION ALL
    SELECT DISTINCT chunk, day, {loadId:String} FROM chunk_days WHERE chunk IN {chunks:Array(String)}
    UNION ALL
    SELECT DISTINCT chunk, day, {loadId:String} FROM incoming_staging WHERE chunk IN {chunks:Array(String)} AND empty(faults)`;
  await tell(ledger, query, { chunks, loadId: load.id });
}

/**
 * Records the days of chunks as changed now. Of a chunk that was sent only once the views have done so; of one that an
 * earlier attempt left in doubt they did when it came, and callers may have been told since that they know all until now.
 */
export async function recordDaysChanged(ledger: Ledger, chunks: readonly string[]): Promise<void> {
  for (const [family, { owner }] of Object.entries(catalog.families)) {
    const query = `
      INSERT INTO ${changesTable(family)} (account_id, day, changed_at)
      SELECT ${owner} AS account_id, day, now64(6, 'UTC') FROM events
      WHERE chunk IN {chunks:Array(String)} AND ${owner} != ''
        AND day IN (SELECT day FROM chunk_days WHERE chunk IN {chunks:Array(String)})
      GROUP BY account_id, day`;
    await tell(ledger, query, { chunks });
  }
}

interface CountedEvents {
  readonly events: number;
  readonly listed: number;
  /**
   * Revenue of one of its accounts and days was confirmed since the first of its events came. Chunks that are counted in one
   * statement share their accounts and days, so it may be 1 because of another chunk, and is never 0 in spite of its own.
   */
  readonly confirmed: 0 | 1;
}

/** When revenue of chunks was confirmed last. Takes `chunks`. */
const lastConfirmed = `SELECT max(c.confirmed_at) FROM confirmations AS c WHERE (account_id, day) IN (
  SELECT arrayJoin([advertiser_id, publisher_id]), day FROM events WHERE chunk IN {chunks:Array(String)}
    AND day IN (SELECT day FROM chunk_days WHERE chunk IN {chunks:Array(String)}))`;

/**
 * How many events of a chunk ClickHouse has, and how many of them its list of days has; the rollups may still lack
 * some.
 */
export const countEvents = repeated<string, CountedEvents>(async (store, chunks) => {
  const query = `
    SELECT chunk, toFloat64(sum(c.listed)) AS listed, toFloat64(sum(c.stored)) AS events,
           toUInt8(listed > 0 AND (${lastConfirmed}) >= minIf(c.at, c.listed > 0)) AS confirmed FROM (
      SELECT chunk, d.events AS listed, 0 AS stored, d.loaded_at AS at FROM chunk_days AS d WHERE chunk IN {chunks:Array(String)}
      UNION ALL
      SELECT chunk, 0 AS listed, count() AS stored, max(e.loaded_at) AS at FROM events AS e WHERE chunk IN {chunks:Array(String)}
        AND day IN (SELECT day FROM chunk_days WHERE chunk IN {chunks:Array(String)}) GROUP BY chunk
    ) AS c GROUP BY chunk`;
  const counted = await select<CountedEvents & { chunk: string }>(store, query, { chunks });
  const none = { events: 0, listed: 0, confirmed: 0 } as const;
  return chunks.map((id) => counted.find(({ chunk }) => chunk === id) ?? none);
});

/** The first rejected rows of a chunk, in the order of the file. */
export const firstRejects = repeated<string, readonly RejectedRow[]>(async (store, chunks) => {
  const query = `
    SELECT chunk, toFloat64(line) AS line, faults FROM rejected_rows AS r FINAL WHERE chunk IN {chunks:Array(String)}
    ORDER BY ${fileOrder('r.line')} LIMIT ${shownRejects} BY chunk`;
  const rejects = await select<RejectedRow & { chunk: string }>(store, query, { chunks });
  return chunks.map((id) => rejects.filter(({ chunk }) => chunk === id).map(({ chunk: _, ...row }) => row));
});

interface StoredRows extends OddDays {
  readonly rows: number;
  /** Those of any load of the chunk. */
  readonly rejectedRows: number;
  /** Those of them that are dismissed; the last load of the chunk may have made events of them. */
  readonly dismissedRows: number;
}

/**
 * How many of the rejected rows count for the last load of a chunk: all but those dismissed ones that it has made events of.
 * @param expected how many it should have rejected
 */
export const rejectedAmong = (
  { rejectedRows, dismissedRows }: Pick<StoredRows, 'rejectedRows' | 'dismissedRows'>,
  expected: number,
): number => Math.min(Math.max(expected, rejectedRows - dismissedRows), rejectedRows);

/** What ClickHouse has of a chunk: counted, not derived. */
export const storedRows = repeated<string, StoredRows>(async (store, chunks) => {
  const query = `
    SELECT chunk, toFloat64(sum(c.good)) AS rows, toFloat64(sum(c.bad)) AS rejectedRows, toFloat64(sum(c.dismissed)) AS dismissedRows,
           toFloat64(sumIf(c.good, ${inFuture})) AS future, toFloat64(sumIf(c.good, ${isEarly})) AS early FROM (
      SELECT chunk, day, d.events AS good, 0 AS bad, 0 AS dismissed FROM chunk_days AS d WHERE chunk IN {chunks:Array(String)}
      UNION ALL
      SELECT chunk, toDate('2000-01-01') AS day, 0 AS good, uniqExact(line) AS bad,
             uniqExactIf(line, ${dismissedRejects}) AS dismissed FROM rejected_rows WHERE chunk IN {chunks:Array(String)} GROUP BY chunk
    ) AS c GROUP BY chunk`;
  const stored = await select<StoredRows & { chunk: string }>(store, query, { chunks });
  const none = { chunk: '', rows: 0, rejectedRows: 0, dismissedRows: 0, future: 0, early: 0 };
  return chunks.map((id) => {
    const { chunk: _, ...rows } = stored.find(({ chunk }) => chunk === id) ?? none;
    return rows;
  });
});
