import { catalog } from '../../catalog/catalog.ts';
import { loadOfChunk } from '../../clickhouse/came-between.ts';
import { type Store, select, selectOne } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { rewriting } from '../../clickhouse/consistency/rewrites.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthsWithin } from '../../clickhouse/months.ts';
import { putInDoubt, withdrawChunks } from '../delivery/withdraw-chunks.ts';
import { changeChunks, inRuns } from '../ledger/change-chunks.ts';
import type { Load, WaitOptions } from '../ledger/load.ts';
import { LoadRefused } from '../ledger/load-error.ts';
import { markUnloaded, replacesLoad, unloadOf } from '../ledger/load-records.ts';
import { type ChunkSet, monthsOf, prunedMonthOf } from '../load/chunk-months.ts';
import { openRejects, reopenRejects } from '../rejects/rejected-rows.ts';
import { inTurn } from './in-turn.ts';
import { type LoadState, requireLoad } from './load-history.ts';
import { keepPastEvents } from './past-events.ts';
import { loadsReplacedBy, replacementOfDays, unfinishedReplacements } from './replacements.ts';
import { requireNotReplayed } from './replayed-rows.ts';

/** What is there of a load to be taken back. */
export interface Unloaded {
  /** It has been taken back or replaced before: there is nothing. */
  readonly before: boolean;
  readonly events: number;
  readonly chunks: number;
  /** `yyyy-mm`; their rollups are rebuilt. */
  readonly months: readonly string[];
  /** Open rejected rows, which are deleted. */
  readonly rejectedRows: number;
  /** Rejected rows that the load has replayed, which are opened again. */
  readonly reopenedRows: number;
  /** Loads that it had replaced, one after the other: their files count as new, too. */
  readonly replaced: readonly string[];
  /** Later loads that may have left out events of it: see `duplicatesOf`. */
  readonly leftOut: readonly LeftOut[];
}

/** Events that a load has left out because their event_id was loaded already. */
interface LeftOut {
  readonly load: string;
  readonly events: number;
}

const nothing: Unloaded = {
  before: true,
  events: 0,
  chunks: 0,
  months: [],
  rejectedRows: 0,
  reopenedRows: 0,
  replaced: [],
  leftOut: [],
};

/**
 * Takes a load back: events, rollups, open rejected rows, and what the ledger knows of its chunks, so that the same
 * file can be loaded again. Only chunks that this load has loaded, or has left in doubt; what it found loaded already
 * belongs to another load. Of a replacement also the files of what it replaced count as new. Waits for all running loads;
 * others wait for it. Killed at any point, it can be repeated; so can the load: the ledger says first of all that nothing of
 * it is loaded.
 * @throws when no such load can be taken back, and, before it changes anything, when events of it have been pruned, rows of it
 * replayed, others stand in the place of some by a replacement of days, or a replacement of it was interrupted
 */
export async function unload(
  store: Store,
  id: string,
  now: () => Date,
  options: WaitOptions = {},
): Promise<Unloaded> {
  if ((await requireUnloadable(store, id)).state === 'unloaded') return nothing;
  return inTurn(store, unloadOf(id), now(), options, async (turn) => {
    const load = await requireUnloadable(store, id);
    return load.state === 'unloaded' ? nothing : takeBack(store, load, turn, options);
  });
}

/** What `unload` would take back now; changes nothing. @throws as `unload` does */
export async function previewUnload(store: Store, id: string): Promise<Unloaded> {
  const load = await requireUnloadable(store, id);
  return load.state === 'unloaded' ? nothing : (await find(store, load)).found;
}

interface Found {
  readonly found: Unloaded;
  /** All that sent it, and what they replaced. */
  readonly loads: readonly string[];
  readonly chunks: readonly string[];
  readonly months: readonly DayRange[];
}

/** @throws when events of the load were pruned, rows that it rejected were replayed, days of it replaced, or its replacement was interrupted */
async function find(store: Store, { id, kind, state, replayId }: LoadState): Promise<Found> {
  const replaced = await loadsReplacedBy(store, id);
  const loads = replayId === '' ? [id, ...replaced] : await loadsOfReplay(store, replayId);
  const own = chunksOf(loads);
  const months = await monthsOf(store, own);
  const pruned = await prunedMonthOf(store, own);
  if (pruned !== undefined) {
    throw new LoadRefused(
      `load ${id} cannot be taken back: adtally prune has folded or dropped its events of ${pruned}, and no other command can tell them from those of other loads. Nothing was changed. A backup from before the prune still has them (adtally restore).`,
    );
  }
  await requireNotReplayed(store, own, `load ${id} cannot be taken back`);
  const by = await replacementOfDays(store, own, loads);
  if (by !== undefined) {
    const instead = kind === 'replay' ? '' : `, or put other files in its place with --replaces ${id}`;
    const whose = replaced.length > 0 ? 'it or of what it has replaced' : 'it';
    throw new LoadRefused(
      `load ${id} cannot be taken back: load ${by} stands in the place of events of ${whose}, which would come back beside those with its file. Take that load back first (adtally unload ${by})${instead}. Nothing was changed.`,
    );
  }
  const [begun] = await unfinishedReplacements(store, replacesLoad(id), id);
  if (begun !== undefined) {
    throw new LoadRefused(
      `load ${id} cannot be taken back: load ${begun} has begun to take its place, and may have brought its events. Run the command of load ${begun} again, which completes it as a new load, and take that one back. Without its files, load others, or those of load ${id}, with --replaces ${id} instead. Nothing was changed.`,
    );
  }
  const counted = await selectOne<{ events: number; rejectedRows: number; reopenedRows: number }>(
    store,
    `SELECT (SELECT toFloat64(sum(d.events)) FROM chunk_days AS d WHERE chunk IN ${own.sql}) AS events,
       (SELECT toFloat64(count()) FROM rejected_rows FINAL WHERE chunk IN ${own.sql} AND ${openRejects}) AS rejectedRows,
       (SELECT toFloat64(count()) FROM rejected_rows FINAL WHERE replay_id = {replayId:String} AND replay_id != '') AS reopenedRows`,
    { ...own.params, replayId },
  );
  const chunks = await idsOf(store, own);
  if (kind === 'replacement' && state !== 'loaded' && chunks.length > 0) {
    throw new LoadRefused(
      `load ${id} cannot be taken back: it was interrupted while old and new events changed places. Run its command again, which completes it; then it can be taken back. Nothing was changed.`,
    );
  }
  const named = months.map(({ from }) => from.slice(0, 7));
  return {
    found: {
      ...{ before: false, ...counted, chunks: chunks.length, months: named, replaced },
      leftOut: months.length === 0 ? [] : await duplicatesOf(store, own, monthsWithin(months)),
    },
    loads,
    chunks,
    months,
  };
}

/**
 * The first ten loads that came later and have left duplicates out of chunks with events of the same months, or without any: what
 * they left out may be in these chunks alone.
 */
function duplicatesOf(
  store: Store,
  { sql, params }: ChunkSet,
  months: readonly number[],
): Promise<LeftOut[]> {
  return select<LeftOut>(
    store,
    `SELECT load, toFloat64(sum(d.left_out)) AS events
     FROM (SELECT load_id AS load, chunk, max(c.duplicate_rows) AS left_out FROM load_chunks AS c
           WHERE c.duplicate_rows > 0 AND chunk NOT IN ${sql}
             AND c.load_id NOT IN (SELECT load_id FROM loads FINAL WHERE state = 'unloaded')
             AND c.loaded_at > (SELECT min(s.sent_at) FROM load_chunks AS s WHERE chunk IN ${sql} AND toUInt64(s.sent_at) > 0)
           GROUP BY load, chunk) AS d
     LEFT JOIN (SELECT chunk, groupUniqArray(toYYYYMM(day)) AS months FROM chunk_days
                WHERE chunk IN (SELECT chunk FROM load_chunks AS c WHERE c.duplicate_rows > 0) GROUP BY chunk) AS m ON m.chunk = d.chunk
     WHERE empty(m.months) OR hasAny(m.months, {months:Array(UInt32)})
     GROUP BY load ORDER BY load LIMIT 10`,
    { ...params, months },
  );
}

async function takeBack(store: Store, load: LoadState, turn: Load, options: WaitOptions): Promise<Unloaded> {
  const ledger = { store, ...options };
  const { found, loads, chunks, months } = await find(store, load);
  const numbers = monthsWithin(months);
  const leaving = {
    sql: (inDatabase?: string) => `chunk IN ${chunksOf(loads, inDatabase).sql}`,
    params: { loads },
    months: numbers,
  };
  await rewriting(store, numbers, async (leftAt) => {
    turn.assertTurnHeld();
    await keepPastEvents(store, leaving, leftAt);
    await inRuns(chunks, async (some) => {
      turn.assertTurnHeld();
      await putInDoubt(ledger, turn, some);
      await withdrawChunks(store, some);
    });
    await forgetDismissed(store, chunksOf(found.replaced));
    await rebuildRollups(store, catalog, months, {
      allowUnsettledChunks: true,
      isRewrite: true,
      beforeExchange: () => turn.assertTurnHeld(),
    });
    // Once reports have their events no more: a replay that comes before finds no open row.
    if (load.replayId !== '') await reopenRejects(store, load.replayId);
  });
  await markUnloaded(store, loads);
  return found;
}

/** Deletes the rejected rows that a replacement has dismissed: with their file they come as new ones. */
export async function forgetDismissed(store: Store, replaced: ChunkSet): Promise<void> {
  await inRuns(await idsOf(store, replaced), (chunks) =>
    changeChunks(store, 'rejected_rows', 'DELETE', { chunks, condition: "replay_id = ''" }),
  );
}

const idsOf = async (store: Store, { sql, params }: ChunkSet): Promise<string[]> =>
  (await select<{ chunk: string }>(store, `SELECT chunk FROM ${sql}`, params)).map(({ chunk }) => chunk);

/**
 * What the loads have loaded; of what no load has loaded, what they sent last. Each chunk is so of one load, also where two have
 * claimed it. It stays the same after the ledger has forgotten that it is loaded, unless another has claimed it since.
 * @param inDatabase prefix of the table of the ledger, for a statement that runs on a shard
 */
export function chunksOf(loads: readonly string[], inDatabase = ''): ChunkSet {
  const ledger = `${inDatabase}load_chunks`;
  // A load has several rows of a chunk until they are merged, and says in one of them alone that it is loaded.
  const sql = `(
    SELECT chunk FROM (
      SELECT chunk, load_id, max(r.sent_at) AS sent_at, max(r.loaded_at) AS loaded_at FROM ${ledger} AS r
      WHERE chunk IN (SELECT chunk FROM ${ledger} WHERE load_id IN {loads:Array(String)}) GROUP BY chunk, load_id) AS c
    GROUP BY chunk HAVING toUInt64(max(c.sent_at)) > 0 AND ${loadOfChunk} IN {loads:Array(String)})`;
  return { sql, params: { loads } };
}

/** All loads that made a replay: one that was killed is finished by the next. */
async function loadsOfReplay(store: Store, replayId: string): Promise<string[]> {
  const query = 'SELECT DISTINCT load_id AS id FROM loads WHERE replay_id = {replayId:String}';
  return (await select<{ id: string }>(store, query, { replayId })).map(({ id }) => id);
}

async function requireUnloadable(store: Store, id: string): Promise<LoadState> {
  const found = await requireLoad(store, id);
  if (found.kind === 'rebuild')
    throw new LoadRefused(`${id} is no load of events: there is nothing to take back`);
  return found;
}
