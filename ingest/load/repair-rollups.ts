import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { select } from '../../clickhouse/client.ts';
import { onServers } from '../../clickhouse/cluster/on-nodes.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { type DayRange, verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { deleteChunk } from './delete-chunk.ts';
import type { Ledger, SentChunk } from './ledger.ts';
import { Load, type LoadOptions } from './load.ts';

/**
 * A chunk that is whole in the events while each rollup may lack it or have it twice, because its name no longer
 * tells the engine all that arrived (see `DedupState`). Where even its events could not be relied on, they were
 * withdrawn and sent again under another name. Only when its rollups are seen to is it loaded; interrupted anywhere,
 * it is still in doubt.
 */
export interface UnsettledChunk {
  readonly chunk: SentChunk;
  readonly rows: number;
  readonly rejectedRows: number;
}

/**
 * Removes what of a chunk has arrived in the events, after ending what still sends it: the statement of a loader that
 * was killed goes on in the server, and would bring the chunk back under a name that nobody knows.
 */
export async function withdrawChunk(store: Store, chunk: string): Promise<void> {
  const sends = "startsWith(Settings['insert_deduplication_token'], {chunk:String})";
  await onServers(store, (server) =>
    retrying(async () => {
      const query = `KILL QUERY WHERE ${sends} SYNC FORMAT Null`;
      await server.command({ query, query_params: { chunk } });
    }),
  );
  for (const table of ['events', 'chunk_days']) await deleteChunk(store, table, chunk);
}

/**
 * Compares the rollups with the events on the days of these chunks, recomputes the months that differ, and marks
 * the chunks as loaded. The load that sent them has ended, so that loads which wait for a chunk of it can end
 * before the comparison.
 * @throws when such a load has taken over a chunk: what it left of it must not pass for whole; and when raw events of
 * a month that differs were dropped
 */
export async function repairRollupsOf(
  store: Store,
  ledger: Ledger,
  load: Load,
  unsettled: readonly UnsettledChunk[],
  now: () => Date,
  options: LoadOptions = {},
): Promise<void> {
  const months = await monthsOf(store, unsettled);
  const file = `rollups of ${months.map(({ from }) => from.slice(0, 7)).join(', ')}, for load ${load.id}`;
  const settling = await Load.begin(store, { kind: 'rebuild', file }, now(), options);
  try {
    const own = await ownChunks(ledger, load, unsettled);
    for (const month of own.length > 0 ? months : []) {
      if ((await verifyRollups(store, catalog, month)).differences.length === 0) continue;
      await requireEvents(store, month, unsettled);
      await rebuildRollups(store, catalog, month, {
        allowUnsettledChunks: true,
        beforeExchange: () => settling.assertTurnHeld(),
      });
    }
    for (const { chunk, rows, rejectedRows } of own) await ledger.markLoaded(load, chunk, rows, rejectedRows);
    await settling.finish();
  } catch (error) {
    await settling.fail(error);
    throw error;
  }
}

/** Where chunks have, or had before they were withdrawn, events: a range of days for each month. */
const chunkDays = `
  SELECT day FROM chunk_days WHERE chunk IN {chunks:Array(String)}
  UNION DISTINCT
  SELECT day FROM withdrawn_chunks WHERE chunk IN {chunks:Array(String)} AND day > toDate(0)`;

function monthsOf(store: Store, unsettled: readonly UnsettledChunk[]): Promise<DayRange[]> {
  return select<DayRange>(
    store,
    `SELECT toString(min(d.day)) AS from, toString(max(d.day)) AS to FROM (${chunkDays}) AS d
     GROUP BY toYYYYMM(d.day) ORDER BY toYYYYMM(d.day)`,
    { chunks: unsettled.map(({ chunk }) => chunk.id) },
  );
}

/** @throws when a rebuild of the month would empty days that only the rollups have */
async function requireEvents(
  store: Store,
  { from }: DayRange,
  unsettled: readonly UnsettledChunk[],
): Promise<void> {
  const inMonth = 'toYYYYMM(day) = toYYYYMM({from:Date})';
  const reported = rollups(catalog).map(({ table }) => `SELECT DISTINCT day FROM ${table} WHERE ${inMonth}`);
  const [gone] = await select<{ day: string }>(
    store,
    `SELECT toString(d.day) AS day FROM (${reported.join(' UNION DISTINCT ')}) AS d
     WHERE d.day NOT IN (SELECT DISTINCT day FROM events WHERE ${inMonth}) AND d.day NOT IN (${chunkDays})
     ORDER BY d.day LIMIT 1`,
    { from, chunks: unsettled.map(({ chunk }) => chunk.id) },
  );
  if (!gone) return;
  throw new Error(
    `rollups of ${from.slice(0, 7)} may hold too much or too little of the file, and cannot be recomputed: they have ${gone.day}, of which there are no raw events any more. Restore the events of that month, then run the same command again`,
  );
}

/** Those that no other load has completed meanwhile. */
async function ownChunks(
  ledger: Ledger,
  load: Load,
  unsettled: readonly UnsettledChunk[],
): Promise<UnsettledChunk[]> {
  const own: UnsettledChunk[] = [];
  for (const each of unsettled) {
    const outcome = await ledger.outcome(load, each.chunk);
    if (outcome === 'own') own.push(each);
    if (outcome === 'taken over') {
      throw new Error(
        'another load has taken over a chunk that an earlier one left in doubt: run the same command again, which sees to it that the chunk is whole',
      );
    }
  }
  return own;
}
