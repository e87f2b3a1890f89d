import { connect, type Store, selectOne } from '../../../clickhouse/client.ts';
import { missingShards } from '../../../clickhouse/cluster/on-nodes.ts';
import {
  NewerStore,
  pendingMigrations,
  requireSameTimezone,
  UnfinishedRestore,
} from '../../../clickhouse/migrate/migrate.ts';
import { runningVersion } from '../../config/version.ts';
import { config, lackOf, print } from '../command/command.ts';
import { leftOvers } from './archive-turn.ts';
import { readData } from './data-status.ts';
import { describeStatus, type Status } from './describe-status.ts';
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
