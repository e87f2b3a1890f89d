import { connect, type Store, selectOne } from '../../../clickhouse/client.ts';
import { missingShards } from '../../../clickhouse/cluster/on-nodes.ts';
import { damagedParts } from '../../../clickhouse/consistency/damaged-parts.ts';
import { foldedChunk } from '../../../clickhouse/consistency/fold-events.ts';
import { localDay } from '../../../clickhouse/local-time.ts';
import {
  NewerStore,
  pendingMigrations,
  requireSameTimezone,
  UnfinishedRestore,
} from '../../../clickhouse/migrate/migrate.ts';
import { monthName } from '../../../clickhouse/months.ts';
import { rollupPartition } from '../../../clickhouse/rollups.ts';
import { requireSettings } from '../../../clickhouse/settings.ts';
import {
  askFigure,
  type ClosedSize,
  closedSize,
  loadsOf,
  openWork,
  type PastSize,
  pastSize,
  type StoreSize,
  storeSize,
  unconfirmedDays,
} from '../../../ingest/history/figures.ts';
import { interruptedRewrites, interruptedUnloads } from '../../../ingest/history/interrupted.ts';
import { judgeDay } from '../../../ingest/history/low-day.ts';
import { failingFiles, lastEventsAt, longestLoad } from '../../../ingest/history/troubled-loads.ts';
import { latelyFollowed } from '../../../ingest/ledger/followed-files.ts';
import type { AlertLimits } from '../../config/config.ts';
import { runningVersion } from '../../config/version.ts';
import { config, lackOf, print } from '../command/command.ts';
import { leftOvers } from './archive-turn.ts';
import { type DataStatus, describeStatus, type Status } from './describe-status.ts';
import { leftOverStep, nextSteps } from './next-steps.ts';

export interface StatusFlags {
  readonly json?: boolean;
  readonly next?: boolean;
}

export async function printStatus(store: Store, now: Date, flags: StatusFlags): Promise<void> {
  const status = await readStatus(store, now);
  if (flags.json) print(JSON.stringify(status));
  else if (flags.next) for (const step of status.next) print(step);
  else print(describeStatus(status));
  if (status.data) requireSameTimezone(status.data.timezone, config().reportTimezone);
  if (status.missing) throw new Error(lackOf(status.missing));
}

async function readStatus(opened: Store, now: Date): Promise<Status> {
  const { clickhouse, dataDir, alerts } = config();
  const { database } = clickhouse;
  // The database may be missing.
  const server = connect({ ...opened.address, database: 'default' });
  const reachable = connect(opened.address, { withoutMissingShards: true });
  try {
    const { version } = await selectOne<{ version: string }>(server, 'SELECT version() AS version');
    const { migrations, first } = await schemaOf(opened);
    const readable = Array.isArray(migrations) && migrations.length === 0;
    const missing = readable ? await missingShards(opened) : [];
    const store = missing.length > 0 ? reachable : opened;
    const left = migrations === 'unfinished restore' ? [] : await leftOvers(server, database);
    const data = readable ? await readData(store, now, alerts) : undefined;
    return {
      adtally: runningVersion(),
      node: process.version,
      clickhouse: version,
      where: clickhouse.url ?? dataDir,
      database,
      migrations,
      ...(missing.length > 0 && { missing }),
      ...(data && { data }),
      next: [
        ...(first === undefined ? nextSteps(data, alerts, now) : [first]),
        ...(left.length > 0 ? [leftOverStep(left)] : []),
      ],
    };
  } finally {
    await reachable.close();
    await server.close();
  }
}

/** Which migrations are missing, and what a person has to do before anything can be read. */
async function schemaOf(store: Store): Promise<Pick<Status, 'migrations'> & { readonly first?: string }> {
  try {
    return { migrations: (await pendingMigrations(store)).map(({ name }) => name) };
  } catch (error) {
    if (error instanceof NewerStore) return { migrations: 'newer', first: error.message };
    if (error instanceof UnfinishedRestore) return { migrations: 'unfinished restore', first: error.message };
    throw error;
  }
}

async function readData(store: Store, now: Date, alerts: AlertLimits): Promise<DataStatus> {
  const { timezone } = await requireSettings(store);
  const today = localDay(now, timezone);
  // Only pruned months are read; the rest is known from metadata.
  const events = await selectOne<{ rows: number; folded_rows: number; first_day: string; last_day: string }>(
    store,
    `SELECT toFloat64(count()) AS rows, if(rows = 0, '', toString(min(day))) AS first_day,
       if(rows = 0, '', toString(max(day))) AS last_day,
       (SELECT toFloat64(count()) FROM events WHERE chunk = '${foldedChunk}'
          AND ${rollupPartition} IN (SELECT month FROM pruned_months)) AS folded_rows FROM events`,
  );
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
    size: await selectOne<StoreSize>(store, storeSize),
    closed: await selectOne<ClosedSize>(store, closedSize),
    past: await selectOne<PastSize>(store, pastSize),
    disk: await selectOne<DataStatus['disk']>(
      store,
      "SELECT toFloat64(free_space) AS free, toFloat64(total_space) AS total FROM system.disks WHERE name = 'default'",
    ),
    loads: await loadsOf(store, today, timezone),
    failing: await failingFiles(store, now),
    longest: await longestLoad(store),
    followed: await latelyFollowed(store),
    last_events: lastEvents ? new Date(lastEvents * 1000).toISOString() : '',
    low_day: judged.filter(({ low, accounts }) => low || accounts > 0),
    open,
    unconfirmed: { oldest_day: unconfirmed.oldest_day, oldest_account: unconfirmed.oldest_account },
    damaged: await damagedParts(store),
    interruptedUnloads: await interruptedUnloads(store),
    interruptedRewrites: (await interruptedRewrites(store)).map(monthName),
  };
}
