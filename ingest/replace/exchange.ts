import { catalog } from '../../catalog/catalog.ts';
import { eventColumns } from '../../catalog/events.ts';
import { select, storeTime } from '../../clickhouse/client.ts';
import { onShards, type Shard } from '../../clickhouse/cluster/on-nodes.ts';
import { shardingKey } from '../../clickhouse/cluster/sharding-key.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import {
  dropStaging,
  fillSettings,
  type Month,
  newStaging,
  replaceMonths,
} from '../../clickhouse/consistency/replace-months.ts';
import { rewriting } from '../../clickhouse/consistency/rewrites.ts';
import { monthsWithin } from '../../clickhouse/months.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { rollupPartition } from '../../clickhouse/rollups.ts';
import { type DeliveredChunk, markLoaded, storedRows } from '../delivery/chunk-outcome.ts';
import { heldBy } from '../delivery/staging.ts';
import { forgetLoaded, stopSending } from '../delivery/withdraw-chunks.ts';
import { keepPastEvents, type Leaving } from '../history/past-events.ts';
import { loadsReplacedBy } from '../history/replacements.ts';
import { chunksOf, forgetDismissed } from '../history/unload.ts';
import { inRuns } from '../ledger/change-chunks.ts';
import { type Ledger, recordChunk } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { markUnloaded } from '../ledger/load-records.ts';
import { monthsOf } from '../load/chunk-months.ts';
import { correctedOnce, dismissRejects, forgetRejected, openRejects } from '../rejects/rejected-rows.ts';
import { relistDays } from './relist-days.ts';
import { heldChunks, isHeldEvent, leavingEvents, monthsIn, type Target } from './target.ts';

export interface Replacement {
  readonly target: Target;
  /** See `replacedLoads`. */
  readonly replaced: readonly string[];
  /** What comes; it is held back for the load. */
  readonly held: readonly DeliveredChunk[];
}

/**
 * Puts what a load holds back in the place of what leaves: in the events, then in the rejected rows, in the rollups
 * and in the ledger. Reports show it from the rollups on. Killed at any point, the same command does all of it again: until the
 * end the ledger has the new chunks in doubt, and the old ones with all their days. The caller holds the turn of a replacement.
 */
export async function exchange(ledger: Ledger, load: Load, replacement: Replacement): Promise<void> {
  const { store } = ledger;
  const { target, replaced } = replacement;
  const { days } = 'load' in target ? {} : target;
  const leaving = leavingEvents(target, replaced, load.id);
  const now = await select<Month>(store, monthsOfExchange(leaving), leaving.params);
  const before = [...(await monthsOf(store, chunksOf(replaced))), ...(days ? [days] : [])];
  const months = monthsWithin([...now, ...before]);
  await rewriting(store, months, async (leftAt) => {
    load.assertTurnHeld();
    await keepPastEvents(store, { ...leaving, months, replaced: true }, leftAt);
    await exchangeAll(ledger, load, replacement);
  });
}

/** The months in which something leaves or comes. */
const monthsOfExchange = ({ sql }: Leaving, inDatabase = '') =>
  monthsIn(`SELECT day FROM events WHERE ${sql(inDatabase)}
    UNION ALL SELECT day FROM ${inDatabase}incoming_staging WHERE ${isHeldEvent}`);

async function exchangeAll(ledger: Ledger, load: Load, replacement: Replacement): Promise<void> {
  const { store } = ledger;
  const { target, replaced, held } = replacement;
  const loadTime = await claim(ledger, load, replacement);
  const { days } = 'load' in target ? {} : target;
  const ranges = [...(await monthsOf(store, chunksOf([...replaced, load.id]))), ...(days ? [days] : [])];
  await dropStaging(store);
  load.assertTurnHeld();
  await onShards(store, (shard) => exchangeEvents(shard, load, replacement, loadTime));
  load.assertTurnHeld();
  await exchangeRejected(ledger, load, replacement);
  await rebuildRollups(store, catalog, ranges, {
    allowUnsettledChunks: true,
    isRewrite: true,
    beforeExchange: () => load.assertTurnHeld(),
  });
  await relistDays(store, target, [...replaced, load.id], ranges);
  for (const { chunk, rows } of held) {
    const stored = await storedRows(ledger, chunk.id);
    if (stored.rows !== rows)
      throw new Error(
        `of chunk ${chunk.id} ${rows} events were to come, and ${stored.rows} are there: please report this`,
      );
  }
  // As where chunks are mended: while it was silent another may have taken a chunk over.
  load.assertTurnHeld();
  await Promise.all(held.map((delivered) => markLoaded(ledger, load, delivered)));
  await markUnloaded(store, replaced);
}

/**
 * Records the chunks that come as in doubt, and the days that they touch. The days of those that leave, too: where this is
 * interrupted when the ledger has them no more, the same command still ends the rewrite of their months.
 * @returns the load time of their rows: a confirmation made since covers none of them
 */
async function claim(ledger: Ledger, load: Load, { held, replaced }: Replacement): Promise<string> {
  const { store } = ledger;
  const leaving = chunksOf(replaced);
  // First without a time: see `claimChunk`.
  await Promise.all(held.map(({ chunk }) => recordChunk(ledger, load, chunk)));
  await Promise.all(held.map(({ chunk }) => recordChunk(ledger, load, chunk, 'sent_at')));
  await store.command({
    query: `INSERT INTO withdrawn_chunks (chunk, day, load_id)
      SELECT DISTINCT chunk, arrayJoin([toDate(0), if(${isHeldEvent}, day, toDate(0))]), {holder:String}
      FROM incoming_staging WHERE load_id = {holder:String}
      UNION DISTINCT
      SELECT chunk, day, {holder:String} FROM chunk_days WHERE chunk IN ${heldChunks()} OR chunk IN ${leaving.sql}`,
    query_params: { holder: load.id, ...leaving.params },
  });
  const ids = held.map(({ chunk }) => chunk.id);
  await inRuns(ids, async (chunks) => {
    await forgetLoaded(store, chunks);
    await stopSending(store, chunks);
  });
  return retrying(() => storeTime(store), ledger);
}

const columns = [...eventColumns, 'chunk', 'loaded_at'].join(', ');

/** Replaces the months of `events` in which something leaves or comes, on a single node or on one shard. */
async function exchangeEvents(
  shard: Shard,
  load: Load,
  { target, replaced, held }: Replacement,
  loadTime: string,
): Promise<void> {
  const { store, part } = shard;
  const whole = part ? `${part.layout.sharding.database}.` : '';
  const here = part ? ` AND ${shardingKey('advertiser', part.layout.sharding)} = ${part.number - 1}` : '';
  const { sql, params } = leavingEvents(target, replaced, load.id);
  const leaving = sql(whole);
  const months = await select<Month>(store, monthsOfExchange({ sql, params }, whole), params);
  if (months.length === 0) return;
  const staging = newStaging()('events');
  const fillAll = async () => {
    const fill = (select: string, query_params: Record<string, unknown>) =>
      store.command({
        query: `INSERT INTO ${staging} (${columns}) ${select}`,
        query_params,
        clickhouse_settings: { ...fillSettings, max_partitions_per_insert_block: '0' },
      });
    await fill(
      `SELECT ${columns} FROM events WHERE ${rollupPartition} IN {months:Array(UInt32)} AND NOT ${leaving}`,
      { ...params, months: months.map(({ month }) => month) },
    );
    for (const { chunk } of held) {
      await fill(
        `SELECT ${eventColumns.join(', ')}, chunk, toDateTime64({loadTime:String}, 6, 'UTC') FROM ${whole}incoming_staging AS s
         WHERE batch = {batch:String} AND ${isHeldEvent}${here} ORDER BY line LIMIT 1 BY line`,
        { holder: load.id, batch: heldBy(chunk.id, load.id), loadTime },
      );
    }
  };
  await replaceMonths(shard, 'events', months, staging, {
    fill: fillAll,
    beforeExchange: () => load.assertTurnHeld(),
  });
}

/**
 * Dismisses the rejected rows of what leaves, and puts those of the chunks that come in the place of what was rejected of them
 * before: read with other flags, such as --round-money, some are events. Those that come with files which the target had replaced
 * are open again.
 */
async function exchangeRejected(
  { store }: Ledger,
  load: Load,
  { target, replaced, held }: Replacement,
): Promise<void> {
  const { sql, params } = chunksOf(replaced);
  await dismissRejects(store, `r.chunk IN ${sql}`, params);
  if ('load' in target) {
    const back = await loadsReplacedBy(store, target.load);
    await forgetDismissed(store, {
      sql: `(SELECT chunk FROM load_chunks WHERE load_id IN {back:Array(String)} AND chunk IN ${heldChunks()}
        AND chunk NOT IN (SELECT chunk FROM load_chunks WHERE load_id = {target:String}))`,
      params: { back, holder: load.id, target: target.load },
    });
  }
  const rejected = 'incoming_staging WHERE load_id = {holder:String} AND notEmpty(faults)';
  const insert = (select: string) =>
    store.command({
      query: `INSERT INTO rejected_rows (chunk, line, load_id, file, faults, raw, fields, version) ${select}`,
      query_params: { holder: load.id, told: correctedOnce },
      clickhouse_settings: fillSettings,
    });
  // A correction that was taken back stays with its row, which is of this load from here on.
  await insert(`SELECT chunk, line, {holder:String}, file, faults, raw, fields, now64(6) FROM rejected_rows FINAL
    WHERE ${openRejects} AND has(faults, ('', {told:String})) AND (chunk, line) IN (SELECT chunk, line FROM ${rejected})`);
  const ids = held.map(({ chunk }) => chunk.id);
  await inRuns(ids, (chunks) => forgetRejected(store, chunks, load.id));
  // Below every other version: a row that was dismissed, or has its correction, stays so.
  await insert(
    `SELECT chunk, line, load_id, file, faults, raw, fields, toDateTime64(0, 6, 'UTC') FROM ${rejected}`,
  );
}
