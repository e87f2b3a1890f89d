import { ClickHouseError } from '@clickhouse/client';
import { closing, connect, type Store, select } from '../../../clickhouse/client.ts';
import { migrate, requireSameTimezone } from '../../../clickhouse/migrate/migrate.ts';
import {
  dropDerived,
  everyMonth,
  keepSince,
  markRestored,
  takePlace,
} from '../../../clickhouse/migrate/restored.ts';
import { besideOf } from '../../../clickhouse/restoring.ts';
import { requireSettings } from '../../../clickhouse/settings.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { commandLine, endRestoredBackup, recorded } from '../../operations/audit.ts';
import { listSchedules } from '../../schedules/schedules.ts';
import { usage } from '../command/arguments.ts';
import { config, say, untilReportsShowIt } from '../command/command.ts';
import { allSynced } from '../command/synced.ts';
import { type Archive, archiveToRead, givenAs, reading } from './archive.ts';
import { alone, requireOneNode, transfer } from './archive-turn.ts';
import { requireSound } from './backup.ts';

export interface RestoreFlags {
  /** Replaces what is in the database. */
  readonly replace?: boolean;
}

/**
 * Brings a backup back. It is restored, migrated to this version and verified in a database beside, and only then takes
 * the place of the one that is there. So a kill or a failure leaves the old data as they are, but for the last moment:
 * from there the same command ends it, and all others say so.
 * @throws when there is data and `replace` is not said, the backup cannot be read, or what it has does not fit
 */
export async function restore(store: Store, from: string, { replace = false }: RestoreFlags): Promise<void> {
  const { database } = store.address;
  await alone(store, async (server, unfinished) => {
    await requireOneNode(store);
    if (unfinished) {
      await takePlace(store.address, config().clickhouse.names);
      await tellRestored(store, unfinished.from, false);
      if (unfinished.from === givenAs(from)) return;
    }
    const archive = archiveToRead(from);
    const hadData = await hasData(server, database);
    if (hadData && !replace) {
      throw usage(`database ${database} has data: --replace drops it for that of the backup`);
    }
    const turn = hadData ? await takeTurn(store, archive.name) : undefined;
    let kept = false;
    await reading(archive, async () => {
      kept = (await restoreBeside(server, store, archive)) && hadData;
      if (turn?.isBehind) say('other loads may have run meanwhile: load their files again');
      if (!hadData && (await hasData(server, database))) {
        throw new Error(
          `database ${database} has got data meanwhile: let no load run, and run the command with --replace to drop it`,
        );
      }
    }).catch(async (error: unknown) => {
      await turn?.fail(error);
      await server.command({ query: `DROP DATABASE IF EXISTS ${besideOf(database)} SYNC` });
      say('nothing was restored: the database has what it had before');
      throw error;
    });
    await markRestored(server, database, givenAs(from));
    await takePlace(store.address, config().clickhouse.names);
    await tellRestored(store, archive.name, kept, turn);
  });
}

/** Waits for running loads. Loads that begin meanwhile wait, too; most of them fail when the old ledger is dropped. */
async function takeTurn(store: Store, name: string): Promise<Load | undefined> {
  try {
    return await Load.begin(store, { kind: 'rebuild', file: `restore of ${name}` }, new Date(), {
      onWait: (other) => say(`waiting for load ${other}`),
    });
  } catch (error) {
    // A backup also brings back what can no longer be read.
    const reason = error instanceof ClickHouseError ? error.type : (error as Error).message;
    say(`whether loads run cannot be told (${reason}): let none run until this has ended`);
    return undefined;
  }
}

/**
 * Restores the backup in the database beside, migrates it, and verifies it.
 * @returns whether it has who was mailed and who signed out since
 */
async function restoreBeside(server: Store, { address }: Store, archive: Archive): Promise<boolean> {
  const database = besideOf(address.database);
  return closing(connect({ ...address, database }), async (beside) => {
    await transfer(
      server,
      `RESTORE DATABASE ${address.database} AS ${database} FROM ${archive.target}`,
      archive,
    );
    await attachChanged(server, database);
    await migrate(beside.address);
    requireSameTimezone((await requireSettings(beside)).timezone, config().reportTimezone, true);
    await dropDerived(server, database);
    // What reports said between backup and restore is lost.
    await beside.command({
      query: `INSERT INTO rewrites (month, began_at) SELECT ${everyMonth}, max(turn) FROM loads FINAL
              WHERE kind = 'rebuild' AND state = 'running' AND startsWith(file, 'backup to ')`,
    });
    // The backup holds itself, as a load that still runs.
    await beside.command({
      query: `INSERT INTO loads SELECT * REPLACE ('loaded' AS state, now64(3) AS finished_at, now64(6) AS version)
              FROM (SELECT * FROM loads FINAL WHERE kind = 'rebuild' AND state = 'running' AND startsWith(file, 'backup to '))`,
    });
    await requireSound(beside, 'restore another backup');
    say('ledger, raw events and rollups of the backup agree');
    const kept = await keepSince(server, address.database);
    // Before the old data go. Of a server the files are out of reach.
    if (archive.outside) await syncTables(server, database);
    return kept;
  });
}

/**
 * ClickHouse counts the changes of a restored table from the number of its parts on, and takes a part for changed already that
 * had more of them before the backup: `unload` and replacements changed nothing (tried, 26.7). Where it attaches a table, it
 * goes on behind the changes of its parts.
 */
async function attachChanged(server: Store, database: string): Promise<void> {
  const changed = await select<{ table: string }>(
    server,
    `SELECT DISTINCT table FROM system.parts
     WHERE active AND database = {database:String} AND data_version > max_block_number`,
    { database },
  );
  for (const { table } of changed) {
    await server.command({ query: `DETACH TABLE ${database}.${table} SYNC` });
    await server.command({ query: `ATTACH TABLE ${database}.${table}` });
  }
}

async function syncTables(server: Store, database: string): Promise<void> {
  const tables = await select<{ paths: string[] }>(
    server,
    'SELECT data_paths AS paths FROM system.tables WHERE database = {database:String}',
    { database },
  );
  for (const path of tables.flatMap(({ paths }) => paths)) await allSynced(path);
}

/**
 * Nothing that fails here makes the restore one that failed.
 * @param kept whether the store is known to have who was mailed and who signed out since the backup
 */
async function tellRestored(store: Store, name: string, kept: boolean, turn?: Load): Promise<void> {
  const warn = (error: Error) => say(`the restore is done, but since then: ${error.message}`);
  await endRestoredBackup(store).catch(warn);
  const entry = { operation: 'restore', input: { from: name } };
  await recorded(store, commandLine(), entry, async () => ({ result: undefined, outcome: {} })).catch(warn);
  await turn?.finish().catch(warn);
  await untilReportsShowIt();
  say(`restored from ${name}`);
  say(
    `tokens that were revoked since the backup are valid again, with their links${kept ? '' : ', and people who signed out since may be signed in again'}: adtally token list`,
  );
  say(
    'what else was done since is undone: take back, replace and replay again what you had, load names, confirm, set limits and currencies, and close months again; then load the files since, and have senders send again what they have sent since',
  );
  if (!kept && (await listSchedules(store).catch(warn))?.length !== 0) {
    say(
      'mails of the days since the backup may be sent again, also to people who unsubscribed since, and schedules that were removed since may be there again: adtally schedule list; then let adtally mail run',
    );
  }
}

async function hasData(server: Store, database: string): Promise<boolean> {
  const found = await select(
    server,
    `SELECT 1 FROM system.parts WHERE active AND database = {database:String} AND table NOT IN ('migrations', 'settings') AND rows > 0 LIMIT 1`,
    { database },
  );
  return found.length > 0;
}
