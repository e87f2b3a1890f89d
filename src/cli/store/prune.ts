import { InvalidArgumentError } from 'commander';
import { rollupTable } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { onShards } from '../../../clickhouse/cluster/on-nodes.ts';
import { requireWholeTable } from '../../../clickhouse/consistency/damaged-parts.ts';
import {
  countFolded,
  type Folded,
  foldEvents,
  foldedChunk,
  recordPrunedMonths,
} from '../../../clickhouse/consistency/fold-events.ts';
import { requireNoUnsettledChunk } from '../../../clickhouse/consistency/rebuild-rollups.ts';
import { dropStaging } from '../../../clickhouse/consistency/replace-months.ts';
import { beginRewrite, endRewrite } from '../../../clickhouse/consistency/rewrites.ts';
import { everyDay } from '../../../clickhouse/consistency/verify-rollups.ts';
import { localDay } from '../../../clickhouse/local-time.ts';
import { monthName } from '../../../clickhouse/months.ts';
import { rollups } from '../../../clickhouse/rollups.ts';
import { requireSettings } from '../../../clickhouse/settings.ts';
import type { Load } from '../../../ingest/ledger/load.ts';
import { loadsRunning } from '../../../ingest/ledger/load-records.ts';
import { addDays } from '../../report/days.ts';
import { counted, formatNumber, say, untilReportsShowIt } from '../command/command.ts';
import { formatBytes } from './describe-status.ts';
import { exclusively } from './exclusively.ts';

export interface PruneFlags {
  /** Whole months that stay, besides the current one. */
  readonly keep: number;
  /** Drops events and rollups: reports have no rows for these months any more. */
  readonly reports?: boolean;
  /** Also where that loses what no close has kept. */
  readonly anyway?: boolean;
  readonly dryRun?: boolean;
}

interface Partition {
  readonly table: string;
  readonly id: string;
  readonly rows: number;
  readonly bytes: number;
}

/** `25mo`, `3y`: months. @throws {InvalidArgumentError} */
export function months(text: string): number {
  const [, count, unit] = /^(\d{1,4})(mo|y)$/.exec(text) ?? [];
  const result = Number(count) * (unit === 'y' ? 12 : 1);
  if (!result) throw new InvalidArgumentError('Give months or years to keep, such as 25mo or 3y.');
  return result;
}

/**
 * Folds the raw events of whole months that are older than what is kept into sums, or drops them with their rollups.
 * Waits for loads; can be repeated.
 * @throws before anything has changed, when it is unknown whether a chunk with events in these months arrived completely, or
 * what would be lost is in no close
 */
export async function prune(store: Store, flags: PruneFlags, now: Date): Promise<void> {
  const { timezone } = await requireSettings(store);
  const first = firstKept(now, timezone, flags.keep);
  const until = addDays(first, -1);
  const requireSafe = async () => {
    await requireWholeTable(store, 'events');
    // Chunks of loads at work are in doubt, too: prune waits for these loads.
    if (!flags.dryRun || (await loadsRunning(store, undefined)).length === 0)
      await requireNoUnsettledChunk(store, 'prune', { from: everyDay.from, to: until });
    if (!flags.anyway) await requireClosed(store, until, flags.reports);
  };
  if (flags.dryRun) {
    await requireSafe();
    return flags.reports ? tellDrop(store, first) : tellFold(store, first);
  }
  const done = await exclusively(store, 'prune', `prune before ${first}`, async (load) => {
    await requireSafe();
    await recordPrunedMonths(store, until);
    const months = await monthsToForget(store, first, flags.reports);
    const beganAt = await beginRewrite(store, months);
    const done = await (flags.reports ? drop(store, first, load) : fold(store, first, load));
    await dropPartitions(store, ['past_events'], first, load);
    await endRewrite(store, months, { beganAt, isLost: 'true' });
    return done;
  });
  await untilReportsShowIt();
  say(done);
}

async function fold(store: Store, first: string, load: Load): Promise<string> {
  const until = addDays(first, -1);
  const before = sum(await partitionsBefore(store, ['events'], first), 'bytes');
  const folded = await foldEvents(store, catalog, until, { beforeExchange: () => load.assertTurnHeld() });
  const after = sum(await partitionsBefore(store, ['events'], first), 'bytes');
  return `${describeFold(folded, first, 'folded')}; ${formatBytes(before)} before, ${formatBytes(after)} now`;
}

async function tellFold(store: Store, first: string): Promise<void> {
  const planned = await countFolded(store, catalog, addDays(first, -1));
  const bytes = sum(await partitionsBefore(store, ['events'], first), 'bytes');
  say(`${describeFold(planned, first, 'would be folded')}; ${formatBytes(bytes)} now`);
}

function describeFold({ events, rows }: Folded, first: string, what: string): string {
  if (events === 0) return `nothing to fold: there is no raw event before ${first}`;
  return `${what}: ${counted(events, 'event')} before ${first} into ${counted(rows, 'row')} of sums; reports keep every figure, and the ids, times and loads of these events go`;
}

/** Events first: what is left of their rollups when it is killed, a rebuild empties, too. */
async function drop(store: Store, first: string, load: Load): Promise<string> {
  // What a killed prune has left keeps the space of every month.
  await dropStaging(store);
  const dropped: Partition[] = [];
  for (const tables of [['events'], rollupTables])
    dropped.push(...(await dropPartitions(store, tables, first, load)));
  return describeDrop(dropped, first, 'dropped');
}

async function dropPartitions(
  store: Store,
  tables: readonly string[],
  first: string,
  load: Load,
): Promise<Partition[]> {
  const dropped = await onShards(store, async (shard) => {
    const partitions = await partitionsOn(shard.store, tables, first);
    for (const partition of partitions) {
      load.assertTurnHeld();
      const query = `ALTER TABLE ${partition.table} DROP PARTITION ID '${partition.id}'`;
      await shard.store.command({ query });
    }
    return partitions;
  });
  return dropped.flat();
}

/** The months whose past goes: of those that were folded before nothing does. */
async function monthsToForget(store: Store, first: string, reports = false): Promise<number[]> {
  const tables = ['past_events', ...(reports ? ['events', ...rollupTables] : [])];
  const dropped = (await partitionsBefore(store, tables, first)).map(({ id }) => Number(id));
  const raw = await select<{ month: number }>(
    store,
    `SELECT toYYYYMM(day) AS month FROM events WHERE day < {first:Date} AND chunk != '${foldedChunk}' GROUP BY month
     UNION DISTINCT SELECT month FROM rewrites FINAL WHERE month BETWEEN 1 AND toYYYYMM({first:Date}) - 1 AND ended_at = 0`,
    { first },
  );
  return [...new Set([...dropped, ...raw.map(({ month }) => month)])];
}

/** @throws when an account has something to lose in a month that is not closed: what was taken back, or all its rows */
async function requireClosed(store: Store, until: string, reports = false): Promise<void> {
  const lost = Object.entries(catalog.families).flatMap(([name, { owner }]) => [
    `SELECT ${owner} AS account_id, day FROM past_events WHERE ${owner} != ''`,
    ...(reports ? [`SELECT account_id, day FROM ${rollupTable(name, [])}`] : []),
  ]);
  const open = await select<{ account: string; month: number }>(
    store,
    `SELECT account_id AS account, toYYYYMM(day) AS month FROM (${lost.join(' UNION ALL ')})
     WHERE day <= {until:Date} GROUP BY account, month
     HAVING (account, month) GLOBAL NOT IN (SELECT account_id, month FROM closes) ORDER BY month, account`,
    { until },
  );
  const [one] = open;
  if (!one) return;
  const month = monthName(one.month);
  const what = reports ? 'rows' : 'events that were taken back or replaced';
  const where =
    open.length === 1
      ? `1 month that its account has not closed, ${month} of ${one.account}`
      : `${counted(open.length, 'month')} that their accounts have not closed, the first ${month} of ${one.account}`;
  throw new Error(
    `nothing was pruned: ${what} would be lost in ${where}: adtally close --all ${month}, or, where that has nothing to close, prune --anyway`,
  );
}

async function tellDrop(store: Store, first: string): Promise<void> {
  const planned = await partitionsBefore(store, ['events', ...rollupTables], first);
  say(describeDrop(planned, first, 'would be dropped'));
}

function describeDrop(partitions: readonly Partition[], first: string, what: string): string {
  const events = partitions.filter(({ table }) => table === 'events');
  const others = partitions.filter(({ table }) => table !== 'events');
  return `${what}: what is before ${first}: ${formatNumber(sum(events, 'rows'))} rows of events and ${formatNumber(sum(others, 'rows'))} of rollups, ${formatBytes(sum(partitions, 'bytes'))}`;
}

const rollupTables = rollups(catalog).map(({ table }) => table);

const sum = (partitions: readonly Partition[], key: 'rows' | 'bytes'): number =>
  partitions.reduce((total, partition) => total + partition[key], 0);

/** The first day of the month that lies `keep` months before the current one, or the first of all. */
function firstKept(now: Date, timeZone: string, keep: number): string {
  const today = localDay(now, timeZone);
  const [year = 0, month = 0] = today.split('-').map(Number);
  const time = Date.UTC(year, month - 1 - keep, 1);
  return new Date(Math.max(time, Date.parse('1970-02-01'))).toISOString().slice(0, 10);
}

async function partitionsBefore(
  store: Store,
  tables: readonly string[],
  first: string,
): Promise<Partition[]> {
  return (await onShards(store, (shard) => partitionsOn(shard.store, tables, first))).flat();
}

function partitionsOn(store: Store, tables: readonly string[], first: string): Promise<Partition[]> {
  return select<Partition>(
    store,
    `SELECT table, partition_id AS id, toFloat64(sum(rows)) AS rows, toFloat64(sum(bytes_on_disk)) AS bytes
     FROM system.parts WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}
     GROUP BY table, partition_id HAVING max(max_date) < {first:Date} ORDER BY table, id`,
    { tables, first },
  );
}
