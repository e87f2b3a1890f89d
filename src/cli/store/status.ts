import { connect, type Store, select } from '../../../clickhouse/client.ts';
import { missingShards } from '../../../clickhouse/cluster/on-nodes.ts';
import { foldedChunk } from '../../../clickhouse/consistency/fold-events.ts';
import { NewerStore, pendingMigrations, storedTimezone } from '../../../clickhouse/migrate/migrate.ts';
import { rollupPartition } from '../../../clickhouse/rollups.ts';
import {
  askFigure,
  loadsOf,
  openWork,
  type StoreSize,
  storeSize,
  unconfirmedDays,
} from '../../../ingest/history/figures.ts';
import { judgeDay } from '../../../ingest/history/low-day.ts';
import { failingFiles, lastEventsAt, longestLoad } from '../../../ingest/history/troubled-loads.ts';
import type { AlertLimits } from '../../config.ts';
import { runningVersion } from '../../version.ts';
import { config, lackOf, print } from '../command.ts';
import { type DataStatus, describeStatus, type Status } from './describe-status.ts';
import { nextSteps } from './next-steps.ts';

export interface StatusFlags {
  readonly json?: boolean;
  readonly next?: boolean;
}

export async function printStatus(server: Store, now: Date, flags: StatusFlags): Promise<void> {
  const status = await readStatus(server, now);
  if (flags.json) print(JSON.stringify(status));
  else if (flags.next) for (const step of status.next) print(step);
  else print(describeStatus(status));
  if (status.missing) throw new Error(lackOf(status.missing));
}

async function readStatus(server: Store, now: Date): Promise<Status> {
  const { clickhouse, dataDir, alerts } = config();
  const store = connect({ ...server.address, database: clickhouse.database }, { withoutMissingShards: true });
  try {
    const [row] = await select<{ version: string }>(server, 'SELECT version() AS version');
    const missing = await missingShards(store);
    const migrations = await missingMigrations(server, store);
    const readable = migrations === 'newer' || migrations.length === 0;
    const data = readable ? await readData(store, now, alerts) : undefined;
    return {
      adtally: runningVersion(),
      node: process.version,
      clickhouse: row?.version ?? '',
      where: clickhouse.url ?? dataDir,
      database: clickhouse.database,
      migrations,
      ...(missing.length > 0 && { missing }),
      ...(data && { data }),
      next: nextSteps(migrations, data, alerts, now),
    };
  } finally {
    await store.close();
  }
}

async function missingMigrations(server: Store, store: Store): Promise<Status['migrations']> {
  // Before the first migration there is no list of them, nor a database.
  const known = await select(
    server,
    "SELECT 1 FROM system.tables WHERE database = {database:String} AND name = 'migrations'",
    { database: store.address.database },
  );
  if (known.length === 0) return ['all'];
  try {
    return (await pendingMigrations(store)).map(({ name }) => name);
  } catch (error) {
    if (error instanceof NewerStore) return 'newer';
    throw error;
  }
}

async function readData(store: Store, now: Date, alerts: AlertLimits): Promise<DataStatus> {
  const timezone = (await storedTimezone(store)) ?? 'UTC';
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(now);
  // Only pruned months are read; the rest is known from metadata.
  const [events] = await select<{ rows: number; folded_rows: number; first_day: string; last_day: string }>(
    store,
    `SELECT toFloat64(count()) AS rows, if(rows = 0, '', toString(min(day))) AS first_day,
       if(rows = 0, '', toString(max(day))) AS last_day,
       (SELECT toFloat64(count()) FROM events WHERE chunk = '${foldedChunk}'
          AND ${rollupPartition} IN (SELECT month FROM pruned_months)) AS folded_rows FROM events`,
  );
  const [size] = await select<StoreSize>(store, storeSize);
  const [disk] = await select<{ free: number; total: number }>(
    store,
    "SELECT toFloat64(free_space) AS free, toFloat64(total_space) AS total FROM system.disks WHERE name = 'default'",
  );
  if (!events || !size || !disk) throw new Error('ClickHouse did not tell what it stores');
  const unconfirmed = await unconfirmedDays(store);
  const open = {
    rejectedRows: await askFigure(store, openWork.rejectedRows),
    chunksInDoubt: await askFigure(store, openWork.chunksInDoubt),
    unconfirmedDays: unconfirmed.figure,
  };
  const lastEvents = await lastEventsAt(store);
  const judged = await judgeDay(store, now, { timezone, rule: alerts.lowDay });
  const { rows, ...more } = events;
  return {
    timezone,
    today,
    events: rows - events.folded_rows,
    ...more,
    size,
    disk,
    loads: await loadsOf(store, today, timezone),
    failing: await failingFiles(store, now),
    longest: await longestLoad(store),
    last_events: lastEvents ? new Date(lastEvents * 1000).toISOString() : '',
    low_day: judged.filter(({ low, accounts }) => low || accounts > 0),
    open,
    unconfirmed: { oldest_day: unconfirmed.oldest_day, oldest_account: unconfirmed.oldest_account },
  };
}
