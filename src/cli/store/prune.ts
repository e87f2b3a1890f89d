import { InvalidArgumentError } from 'commander';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { onShards } from '../../../clickhouse/cluster/on-nodes.ts';
import { requireMigrated, storedTimezone } from '../../../clickhouse/migrate/migrate.ts';
import { rollups } from '../../../clickhouse/rollups.ts';
import { counted, formatNumber, say, untilReportsShowIt } from '../command.ts';
import { formatBytes } from './describe-status.ts';
import { exclusively } from './exclusively.ts';

export interface PruneFlags {
  /** Whole months that stay, besides the current one. */
  readonly keep: number;
  /** Drops the rollups, too: reports have no rows for these months any more. */
  readonly reports?: boolean;
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

/** Drops whole months of raw events that are older than what is kept. Waits for loads; can be repeated. */
export async function prune(store: Store, flags: PruneFlags, now: Date): Promise<void> {
  await requireMigrated(store);
  const first = firstKept(now, (await storedTimezone(store)) ?? 'UTC', flags.keep);
  const tables = ['events', ...(flags.reports ? rollups(catalog).map(({ table }) => table) : [])];
  if (flags.dryRun) {
    const old = (await onShards(store, (shard) => partitionsBefore(shard.store, tables, first))).flat();
    return tell(old, `would be dropped: what is before ${first}`, flags);
  }
  const dropped = await exclusively(store, `prune before ${first}`, async (load) => {
    const done = await onShards(store, async (shard) => {
      const old = await partitionsBefore(shard.store, tables, first);
      for (const { table, id } of old) {
        load.assertTurnHeld();
        await shard.store.command({ query: `ALTER TABLE ${table} DROP PARTITION ID '${id}'` });
      }
      return old;
    });
    return done.flat();
  });
  await untilReportsShowIt();
  tell(dropped, `dropped: what is before ${first}`, flags);
}

function tell(partitions: readonly Partition[], what: string, { reports }: PruneFlags): void {
  const sum = (rows: readonly Partition[], key: 'rows' | 'bytes') =>
    rows.reduce((total, row) => total + row[key], 0);
  const events = partitions.filter(({ table }) => table === 'events');
  const others = partitions.filter(({ table }) => table !== 'events');
  say(
    `${what}: ${counted(sum(events, 'rows'), 'event')}${reports ? ` and ${formatNumber(sum(others, 'rows'))} rows of rollups` : ''}, ${formatBytes(sum(partitions, 'bytes'))}`,
  );
  if (events.length > 0 && !reports) {
    say(
      'reports keep these months; give verify and rebuild a --from after them: a rebuild would empty their rollups',
    );
  }
}

/** The first day of the month that lies `keep` months before the current one, or the first of all. */
function firstKept(now: Date, timeZone: string, keep: number): string {
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(now);
  const [year = 0, month = 0] = today.split('-').map(Number);
  const time = Date.UTC(year, month - 1 - keep, 1);
  return new Date(time > 0 ? time : 0).toISOString().slice(0, 10);
}

function partitionsBefore(store: Store, tables: readonly string[], first: string): Promise<Partition[]> {
  return select<Partition>(
    store,
    `SELECT table, partition_id AS id, toFloat64(sum(rows)) AS rows, toFloat64(sum(bytes_on_disk)) AS bytes
     FROM system.parts WHERE active AND database = currentDatabase() AND table IN {tables:Array(String)}
     GROUP BY table, partition_id HAVING max(max_date) < {first:Date} ORDER BY table, id`,
    { tables, first },
  );
}
