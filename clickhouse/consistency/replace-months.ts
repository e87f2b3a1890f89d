import { randomBytes } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { type Store, select } from '../client.ts';
import { onServersInReach, type Shard } from '../cluster/on-nodes.ts';
import { requireWholeTable } from './damaged-parts.ts';
import type { DayRange } from './verify-rollups.ts';

export interface Month extends DayRange {
  /** `yyyymm` */
  readonly month: number;
}

/** No other table has a name with this prefix. */
const stagingPrefix = 'rebuild_';

/** A staging table is new and its rows are grouped, so nothing in it can be a duplicate. */
export const fillSettings: ClickHouseSettings = {
  insert_deduplicate: 0,
  deduplicate_insert: 'disable',
  deduplicate_insert_select: 'disable',
};

/** The names of the staging tables of one run, by table. Unique: a statement of a killed run that goes on in ClickHouse cannot touch them. */
export function newStaging(): (table: string) => string {
  const run = randomBytes(4).toString('hex');
  return (table) => `${stagingPrefix}${table}_${run}`;
}

/**
 * Replaces whole months of a table, on a single node or on one shard, by what is filled into a staging table. That takes
 * the other months from the table (hard links, no copies) and replaces it in one step, so that a reader sees either the
 * old rows or the new ones. The caller or ClickHouse can be killed at any point: `dropStaging` removes what is left. A
 * REPLACE PARTITION per month is not enough: when ClickHouse died, old rows stayed beside the new ones (tried: 4,000
 * became 8,000).
 *
 * The new table knows no dedup ids of chunks, whatever their month. The caller makes sure that nothing is inserted into
 * the table between the fill and the exchange.
 * @param staging see `newStaging`
 * @param fill also checks what it has filled; when it throws, the table stays as it is
 * @param beforeExchange checks that it may still be done: an insert since the fill would be lost. When it throws, the table stays
 * @throws when a part of the table is damaged: with the old table what tells so would go
 */
export async function replaceMonths(
  shard: Shard,
  table: string,
  months: readonly Month[],
  staging: string,
  { fill, beforeExchange }: { readonly fill: () => Promise<void>; readonly beforeExchange?: () => void },
): Promise<void> {
  await stageMonths(shard, table, months, staging, fill);
  await requireWholeTable(shard.store, table);
  beforeExchange?.();
  await exchangeMonths(shard, table, months, staging);
}

/** The first step of `replaceMonths`, after which nothing has changed for readers. */
export async function stageMonths(
  { store, part }: Shard,
  table: string,
  months: readonly Month[],
  staging: string,
  fill: () => Promise<void>,
): Promise<void> {
  const replicated = part?.layout.replicated ?? false;
  // AS without an engine would copy the path of a replicated table in the coordination service.
  const engine = replicated ? await unreplicatedEngine(store, table) : '';
  await store.command({ query: `CREATE TABLE ${staging} AS ${table} ${engine}` });
  await fill();
  if (replicated) return;
  for (const month of await otherMonths(store, table, months)) {
    await store.command({ query: `ALTER TABLE ${staging} ATTACH PARTITION ${month} FROM ${table}` });
  }
}

/**
 * The second one. `dropStaging` removes the old table.
 * @throws when ClickHouse started meanwhile and found what was filled damaged, or when another replica has it
 */
export async function exchangeMonths(
  { store, part }: Shard,
  table: string,
  months: readonly Month[],
  staging: string,
): Promise<void> {
  const [lost] = await select<{ name: string }>(
    store,
    'SELECT name FROM system.detached_parts WHERE database = currentDatabase() AND table = {staging:String} LIMIT 1',
    { staging },
  );
  if (lost) throw new Error(`part ${lost.name} of ${staging} is damaged: run the same command again`);
  if (part?.layout.replicated) await replacePartitions(store, table, staging, months);
  else await store.command({ query: `EXCHANGE TABLES ${staging} AND ${table}` });
}

/** Removes the staging tables of a run: the old rows, or what a run that was killed or has failed has filled, on whichever replica. */
export async function dropStaging(store: Store): Promise<void> {
  await onServersInReach(store, async (server) => {
    const left = await select<{ name: string }>(
      server,
      'SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, {prefix:String})',
      { prefix: stagingPrefix },
    );
    for (const { name } of left) await server.command({ query: `DROP TABLE IF EXISTS ${name} SYNC` });
  });
}

/** The same for one run that ends: where it has lost its turn, another may have staged since. */
export async function dropStagingOf(store: Store, tables: readonly string[]): Promise<void> {
  await onServersInReach(store, async (server) => {
    for (const name of tables) await server.command({ query: `DROP TABLE IF EXISTS ${name} SYNC` });
  });
}

async function unreplicatedEngine(store: Store, table: string): Promise<string> {
  const [found] = await select<{ engine: string; partition: string; sort: string }>(
    store,
    `SELECT engine, partition_key AS partition, sorting_key AS sort FROM system.tables
     WHERE database = currentDatabase() AND name = {table:String}`,
    { table },
  );
  if (!found) throw new Error(`there is no table ${table}: adtally check says what is missing`);
  return `ENGINE = ${found.engine.replace('Replicated', '')} PARTITION BY ${found.partition} ORDER BY (${found.sort})`;
}

/**
 * EXCHANGE TABLES applies to one replica only, so the months of a replicated table are replaced instead. Each is one
 * entry in the replication log, and a server that dies comes back with either the old rows or the new ones.
 */
async function replacePartitions(
  store: Store,
  table: string,
  staging: string,
  months: readonly Month[],
): Promise<void> {
  const [staged] = await select<{ result: number }>(store, `EXISTS TABLE ${staging}`);
  if (!staged?.result)
    throw new Error(
      `this replica lacks ${staging}, which another one has filled: run the same command again`,
    );
  const filled = await otherMonths(store, staging, []);
  for (const { month } of months) {
    await store.command({
      query: filled.includes(month)
        ? `ALTER TABLE ${table} REPLACE PARTITION ${month} FROM ${staging}`
        : `ALTER TABLE ${table} DROP PARTITION ${month}`,
    });
  }
}

/** The months of a table, except the replaced ones. */
async function otherMonths(store: Store, table: string, replaced: readonly Month[]): Promise<number[]> {
  const rows = await select<{ month: number }>(
    store,
    `SELECT DISTINCT toUInt32(partition) AS month FROM system.parts
     WHERE database = currentDatabase() AND table = {table:String} AND active
       AND toUInt32(partition) NOT IN {replaced:Array(UInt32)}`,
    { table, replaced: replaced.map(({ month }) => month) },
  );
  return rows.map(({ month }) => month);
}
