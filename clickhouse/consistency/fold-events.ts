import { dimensionOf } from '../../catalog/breakdowns.ts';
import type { Catalog, Family } from '../../catalog/catalog.ts';
import { type Store, select, selectOne } from '../client.ts';
import { onShards, type Shard } from '../cluster/on-nodes.ts';
import { rollupPartition, rollups, selectOf } from '../rollups.ts';
import {
  dropStaging,
  dropStagingOf,
  fillSettings,
  type Month,
  newStaging,
  replaceMonths,
} from './replace-months.ts';
import { type DayRange, daySlices } from './verify-rollups.ts';

/** The chunk of rows that stand for the events of a pruned month: they belong to no load. */
export const foldedChunk = 'folded';

/** What folding does to `events`, on all shards. */
export interface Folded {
  /** Raw events, of months that have any. */
  readonly events: number;
  /** Rows of `events` in these months afterwards. */
  readonly rows: number;
}

/**
 * Folds the raw events of whole months into one row per day and key of the finest rollup of each family, so that every
 * view makes the same of them as before: what reads events needs not know which months are folded. An event of both sides
 * becomes part of two rows. Confirmed money, positive and negative amounts stay apart, as it is single events that make
 * a day unconfirmed. Reasons stay apart, too, because explanations tell them. Rows that were folded before are folded in again.
 *
 * Per shard in one step (`replaceMonths`), after a comparison of the finest rollups of both; killed at any point, it can
 * be repeated. The caller makes sure that no load and no rebuild runs, and records the months first.
 * @param until the last day that may be folded, the last of a month
 * @returns what it has done
 * @throws when a rollup would change, before anything has
 */
export async function foldEvents(
  store: Store,
  catalog: Catalog,
  until: string,
  { beforeExchange }: { readonly beforeExchange?: () => void } = {},
): Promise<Folded> {
  await dropStaging(store);
  const staging = newStaging()('events');
  try {
    return await onMonths(store, until, async (shard, months) => {
      let rows = 0;
      const fillAll = async () => {
        for (const days of await slicesOf(shard.store, months)) {
          await fill(shard.store, catalog, staging, days);
          await requireSameRollups(shard.store, catalog, staging, days);
        }
        rows = await countRows(shard.store, staging);
      };
      await replaceMonths(shard, 'events', months, staging, { fill: fillAll, beforeExchange });
      return rows;
    });
  } finally {
    await dropStagingOf(store, [staging]);
  }
}

/** What folding would do. Changes nothing. */
export function countFolded(store: Store, catalog: Catalog, until: string): Promise<Folded> {
  return onMonths(store, until, async (shard, months) => {
    let rows = 0;
    for (const days of await slicesOf(shard.store, months))
      rows += await countRows(shard.store, `(${foldedRows(catalog)})`, days);
    return rows;
  });
}

/** @param fold tells how many rows the months of a shard become */
async function onMonths(
  store: Store,
  until: string,
  fold: (shard: Shard, months: readonly Month[]) => Promise<number>,
): Promise<Folded> {
  const sum = { events: 0, rows: 0 };
  await onShards(store, async (shard) => {
    const months = await monthsToFold(shard.store, until);
    if (months.length === 0) return;
    const rows = await fold(shard, months);
    sum.rows += rows;
    for (const { events } of months) sum.events += events;
  });
  return sum;
}

async function countRows(store: Store, from: string, days?: DayRange): Promise<number> {
  const query = `SELECT toFloat64(count()) AS rows FROM ${from}`;
  const counted = await selectOne<{ rows: number }>(store, query, { ...days });
  return counted.rows;
}

/**
 * Records that the months of events up to a day are pruned from now on: before they are, so that a prune that is killed
 * in between only makes others refuse. To be repeated before each prune.
 * @param until the last day of a month
 */
export async function recordPrunedMonths(store: Store, until: string): Promise<void> {
  await store.command({
    query: `INSERT INTO pruned_months (month, pruned_at)
            SELECT ${rollupPartition} AS month, greatest(now64(6, 'UTC'), max(e.loaded_at)) FROM events AS e
            WHERE day <= {until:Date} GROUP BY month HAVING countIf(e.chunk != '${foldedChunk}') > 0`,
    query_params: { until },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
}

/** A WITH expression for `isPruned`. */
export const prunedMonths = `(SELECT mapFromArrays(groupArray(p.month), groupArray(p.at)) FROM (
  SELECT month, max(m.pruned_at) AS at FROM pruned_months AS m GROUP BY month) AS p) AS pruned`;

/** Whether what was loaded then for a day is pruned, or about to be. To be used after `WITH ${prunedMonths}`. */
export const isPruned = `loaded_at <= pruned[${rollupPartition}]`;

const inDays = 'day BETWEEN {from:Date} AND {to:Date}';

/** The months that have raw events, with their first and last day, and how many. */
function monthsToFold(store: Store, until: string): Promise<(Month & Pick<Folded, 'events'>)[]> {
  return select(
    store,
    `SELECT ${rollupPartition} AS month, toString(min(e.day)) AS from, toString(max(e.day)) AS to,
       toFloat64(countIf(e.chunk != '${foldedChunk}')) AS events
     FROM events AS e WHERE day <= {until:Date} GROUP BY month HAVING events > 0 ORDER BY month`,
    { until },
  );
}

async function slicesOf(store: Store, months: readonly Month[]): Promise<DayRange[]> {
  const slices: DayRange[] = [];
  for (const days of months) slices.push(...(await daySlices(store, ['events'], days)));
  return slices;
}

async function fill(store: Store, catalog: Catalog, staging: string, days: DayRange): Promise<void> {
  for (const family of Object.values(catalog.families)) {
    await store.command({
      query: `INSERT INTO ${staging} (${columnsOf(catalog, family).join(', ')}) ${foldedRowsOf(catalog, family)}`,
      query_params: { ...days },
      clickhouse_settings: fillSettings,
    });
  }
}

const foldedRows = (catalog: Catalog): string =>
  Object.values(catalog.families)
    .map((family) => `SELECT 1 FROM (${foldedRowsOf(catalog, family)})`)
    .join(' UNION ALL ');

function keysOf(catalog: Catalog, { owner, entity, dimensions }: Family): string[] {
  return [owner, ...[entity, ...dimensions].map((name) => dimensionOf(catalog, name).key)];
}

function amountsOf({ measures }: Family): string[] {
  return [...new Set(Object.values(measures).map(({ sumOf }) => sumOf))];
}

function columnsOf(catalog: Catalog, family: Family): string[] {
  return [
    ...keysOf(catalog, family),
    ...amountsOf(family),
    'event_time',
    'confirmed',
    'reason',
    'loaded_at',
    'chunk',
  ];
}

/** One side of the events of some days, in the order of `columnsOf`. */
function foldedRowsOf(catalog: Catalog, family: Family): string {
  const keys = keysOf(catalog, family);
  return `
    SELECT ${keys.join(', ')}, ${amountsOf(family)
      .map((name) => `sum(e.${name})`)
      .join(', ')}, min(e.event_time), confirmed, reason, max(e.loaded_at), '${foldedChunk}'
    FROM events AS e WHERE ${family.owner} != '' AND ${inDays}
    GROUP BY day, ${keys.join(', ')}, confirmed, reason, sign(${family.money})`;
}

/** @throws when the events of some days and what they were folded into differ for any key of a rollup */
async function requireSameRollups(
  store: Store,
  catalog: Catalog,
  staging: string,
  days: DayRange,
): Promise<void> {
  for (const rollup of rollups(catalog).filter(({ owner }) => owner)) {
    const names = rollup.columns.map(({ name }) => name).join(', ');
    const rows = (from: string, count: number) =>
      `SELECT cityHash64(${names}) AS row, ${count} AS counted FROM (${selectOf(rollup, from)}) WHERE ${inDays}`;
    const [differs] = await select(
      store,
      `SELECT 1 FROM (${rows('events', -1)} UNION ALL ${rows(staging, 1)}) HAVING groupBitXor(row) != 0 OR sum(counted) != 0`,
      { ...days },
    );
    if (differs) {
      throw new Error(
        `the events from ${days.from} to ${days.to} cannot be folded: ${rollup.table} would change. Nothing was changed; please report this`,
      );
    }
  }
}
