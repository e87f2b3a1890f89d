import { connect, type Store, select } from '../../../clickhouse/client.ts';
import { NewerStore, pendingMigrations, storedTimezone } from '../../../clickhouse/migrate/migrate.ts';
import { askFigure, loadsOf, openWork, type StoreSize, storeSize } from '../../../ingest/history/figures.ts';
import { runningVersion } from '../../version.ts';
import { config, print } from '../command.ts';
import { type DataStatus, describeStatus, type Status } from './describe-status.ts';
import { nextSteps } from './next-steps.ts';

export async function printStatus(server: Store, now: Date, json: boolean): Promise<void> {
  const status = await readStatus(server, now);
  print(json ? JSON.stringify(status) : describeStatus(status));
}

async function readStatus(server: Store, now: Date): Promise<Status> {
  const { clickhouse, dataDir } = config();
  const store = connect({ ...server.address, database: clickhouse.database });
  try {
    const [row] = await select<{ version: string }>(server, 'SELECT version() AS version');
    const migrations = await missingMigrations(server, store);
    const readable = migrations === 'newer' || migrations.length === 0;
    const data = readable ? await readData(store, now) : undefined;
    return {
      adtally: runningVersion(),
      node: process.version,
      clickhouse: row?.version ?? '',
      where: clickhouse.url ?? dataDir,
      database: clickhouse.database,
      migrations,
      ...(data && { data }),
      next: nextSteps(migrations, data),
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

async function readData(store: Store, now: Date): Promise<DataStatus> {
  const timezone = (await storedTimezone(store)) ?? 'UTC';
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(now);
  const [events] = await select<{ events: number; first_day: string; last_day: string }>(
    store,
    `SELECT toFloat64(count()) AS events, if(events = 0, '', toString(min(day))) AS first_day,
       if(events = 0, '', toString(max(day))) AS last_day FROM events`,
  );
  const [size] = await select<StoreSize>(store, storeSize);
  const [disk] = await select<{ free: number; total: number }>(
    store,
    "SELECT toFloat64(free_space) AS free, toFloat64(total_space) AS total FROM system.disks WHERE name = 'default'",
  );
  if (!events || !size || !disk) throw new Error('ClickHouse did not tell what it stores');
  const open = {
    rejectedRows: await askFigure(store, openWork.rejectedRows),
    chunksInDoubt: await askFigure(store, openWork.chunksInDoubt),
    unconfirmedDays: await askFigure(store, openWork.unconfirmedDays),
  };
  return { timezone, today, ...events, size, disk, loads: await loadsOf(store, today, timezone), open };
}
