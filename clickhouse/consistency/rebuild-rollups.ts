import { randomBytes } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../client.ts';
import { onShards, type Shard } from '../cluster/on-nodes.ts';
import { shardingKey } from '../cluster/sharding-key.ts';
import { type Rollup, rollupPartition, rollups } from '../rollups.ts';
import { type DayRange, daySlices, everyDay } from './verify-rollups.ts';

export interface RebuildStep {
  readonly table: string;
  /** `yyyymm` */
  readonly month: number;
  /** Of `total`, this step included. */
  readonly done: number;
  readonly total: number;
}

export interface RebuildOptions {
  readonly onStep?: (step: RebuildStep) => void;
  /** Chunks in doubt are no hindrance: whoever sends one again after this rebuild withdraws it first. */
  readonly allowUnsettledChunks?: boolean;
  /** Throws when something may have been loaded since, which the rollups that are built would lack. */
  readonly beforeExchange?: () => void;
}

/** Rebuilding now would lead to wrong sums; the message says what to do first. */
class RebuildError extends Error {
  override readonly name = 'RebuildError';
}

/** No other table of the store begins like this. */
const stagingPrefix = 'rebuild_';

/** A staging table is new and its rows are grouped: nothing in it can be a repetition. */
const fillSettings: ClickHouseSettings = {
  insert_deduplicate: 0,
  deduplicate_insert: 'disable',
  deduplicate_insert_select: 'disable',
};

/**
 * Recomputes every rollup from the raw events, for the whole months that the range touches, and returns how
 * many months and rollups that were. A month without events ends up empty.
 *
 * A rollup is built anew beside the old one, which lends it its other months (hard links, no copies), and takes its
 * place in one step, on each shard of a cluster. So a reader sees the old rollup or the new one (of an account on
 * several shards, perhaps the old one of some of them), and it may be killed at any point, as may
 * the server, and repeated: a REPLACE PARTITION for each month could leave the old rows beside the new ones when
 * the server died (tried: 4,000 became 8,000). What a killed run left behind, the next one removes.
 *
 * The caller sees to it that nothing is loaded and no other rebuild runs meanwhile: a chunk that arrives
 * between the building and the exchange of a rollup would be lost from it.
 *
 * The new rollup has no memory of the chunks it holds, of whatever month: only the ledger (`load_chunks`) keeps a
 * chunk from being sent, and counted, again. A load that finds a chunk in doubt sees that rollups were rebuilt since.
 * @throws {RebuildError} when the ledger does not know whether a chunk with events arrived
 */
export async function rebuildRollups(
  store: Store,
  catalog: Catalog,
  range: DayRange = everyDay,
  { onStep, allowUnsettledChunks = false, beforeExchange }: RebuildOptions = {},
): Promise<{ months: number; rollups: number }> {
  const all = rollups(catalog);
  await onShards(store, (shard) => dropStaging(shard.store));
  const touched = await touchedMonths(store, all, range);
  if (touched.length === 0) return { months: 0, rollups: all.length };
  if (!allowUnsettledChunks) await requireNoUnsettledChunk(store);
  const runs: DayRange[][] = [];
  for (const days of touched) runs.push(await daySlices(store, ['events'], days));
  try {
    let done = 0;
    // In the order of the cascade: a coarser rollup is counted from the finer one that was just exchanged.
    for (const rollup of all) {
      await onShards(store, (shard) => rebuildOn(shard, rollup, touched, runs, beforeExchange));
      for (const { month } of touched) {
        onStep?.({ table: rollup.table, month, done: ++done, total: touched.length * all.length });
      }
    }
  } finally {
    await onShards(store, (shard) => dropStaging(shard.store));
  }
  return { months: touched.length, rollups: all.length };
}

/** Rebuilds a rollup of a single node, or what one shard has of it. */
async function rebuildOn(
  { store, part }: Shard,
  rollup: Rollup,
  touched: readonly Month[],
  runs: readonly DayRange[][],
  beforeExchange?: () => void,
): Promise<void> {
  const { table, sortingKey } = rollup;
  // A name of its own: what a killed run has still under way at the server cannot meet this table.
  const staging = `${stagingPrefix}${table}_${randomBytes(4).toString('hex')}`;
  const replicated = part?.layout.replicated ?? false;
  // A copy of a replicated table would share its path in the coordination service.
  const engine = replicated
    ? `ENGINE = AggregatingMergeTree PARTITION BY ${rollupPartition} ORDER BY (${sortingKey.join(', ')})`
    : '';
  await store.command({ query: `CREATE TABLE ${staging} AS ${table} ${engine}` });
  const select = part ? selectOfShard(rollup, part) : rollup.select;
  for (const days of runs.flat()) await fill(store, staging, { ...rollup, select }, days);
  beforeExchange?.();
  if (replicated) await replaceMonths(store, table, staging, touched);
  else {
    for (const month of await otherMonths(store, table, touched)) {
      await store.command({ query: `ALTER TABLE ${staging} ATTACH PARTITION ${month} FROM ${table}` });
    }
    await store.command({ query: `EXCHANGE TABLES ${staging} AND ${table}` });
  }
  await store.command({ query: `DROP TABLE ${staging} SYNC` });
}

/**
 * Names are exchanged on one replica only, so of a replicated rollup the months are replaced: each is one entry of the
 * log that all replicas follow, and a server that dies comes back with the old rows or the new ones.
 */
async function replaceMonths(
  store: Store,
  table: string,
  staging: string,
  touched: readonly Month[],
): Promise<void> {
  const filled = await otherMonths(store, staging, []);
  for (const { month } of touched) {
    await store.command({
      query: filled.includes(month)
        ? `ALTER TABLE ${table} REPLACE PARTITION ${month} FROM ${staging}`
        : `ALTER TABLE ${table} DROP PARTITION ${month}`,
    });
  }
}

/**
 * What a rollup of one shard holds: advertisers' events lie on the shard of their rollups, a publisher's on many.
 */
function selectOfShard({ select, owner }: Rollup, { number, layout }: NonNullable<Shard['part']>): string {
  if (owner !== 'publisher_id') return select;
  const { sharding } = layout;
  return select
    .replace(' FROM events ', ` FROM ${sharding.database}.events `)
    .replace(' GROUP BY ', ` AND ${shardingKey('publisher', sharding)} = ${number - 1} GROUP BY `);
}

async function fill(
  store: Store,
  staging: string,
  rollup: Pick<Rollup, 'columns' | 'select'>,
  days: DayRange,
): Promise<void> {
  const columns = rollup.columns.map(({ name }) => name).join(', ');
  await store.command({
    query: `INSERT INTO ${staging} (${columns})
            SELECT ${columns} FROM (${rollup.select}) WHERE day BETWEEN {from:Date} AND {to:Date}`,
    query_params: { ...days },
    clickhouse_settings: fillSettings,
  });
}

/** The months of a table other than these. */
async function otherMonths(store: Store, table: string, touched: readonly Month[]): Promise<number[]> {
  const rows = await select<{ month: number }>(
    store,
    `SELECT DISTINCT toUInt32(partition) AS month FROM system.parts
     WHERE database = currentDatabase() AND table = {table:String} AND active
       AND toUInt32(partition) NOT IN {touched:Array(UInt32)}`,
    { table, touched: touched.map(({ month }) => month) },
  );
  return rows.map(({ month }) => month);
}

async function dropStaging(store: Store): Promise<void> {
  const left = await select<{ name: string }>(
    store,
    'SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, {prefix:String})',
    { prefix: stagingPrefix },
  );
  for (const { name } of left) await store.command({ query: `DROP TABLE IF EXISTS ${name} SYNC` });
}

interface Month extends DayRange {
  /** `yyyymm` */
  readonly month: number;
}

/** The months that the range touches in which there are events or rows of a rollup, with the days that have any. */
async function touchedMonths(store: Store, all: readonly Rollup[], range: DayRange): Promise<Month[]> {
  const days = ['events', ...all.map(({ table }) => table)].map(
    (table) =>
      `SELECT DISTINCT day FROM ${table}
       WHERE ${rollupPartition} BETWEEN toYYYYMM({from:Date}) AND toYYYYMM({to:Date})`,
  );
  return select<Month>(
    store,
    `SELECT ${rollupPartition} AS month, toString(min(d.day)) AS from, toString(max(d.day)) AS to
     FROM (${days.join(' UNION ALL ')}) AS d GROUP BY month ORDER BY month`,
    { ...range },
  );
}

/**
 * A chunk in doubt is completed by the next load of its file, which is cheaper than withdrawing it after a rebuild.
 */
async function requireNoUnsettledChunk(store: Store): Promise<void> {
  const inDoubt = '(SELECT chunk FROM load_chunks GROUP BY chunk HAVING toUInt64(max(loaded_at)) = 0)';
  const [found] = await select<{ chunk: string; load: string; file: string }>(
    store,
    `SELECT c.chunk AS chunk, any(c.load_id) AS load, any(l.file) AS file
     FROM load_chunks AS c LEFT JOIN loads AS l ON l.load_id = c.load_id
     WHERE c.chunk IN (SELECT chunk FROM events WHERE chunk IN ${inDoubt})
     GROUP BY c.chunk ORDER BY load LIMIT 1`,
  );
  if (!found) return;
  throw new RebuildError(
    `load ${found.load} was cut off: it is not known whether all of chunk ${found.chunk.slice(0, 12)} of ${found.file} arrived. Load the file again, which completes it, then rebuild. The other way round, its events could be counted twice.`,
  );
}
