import { basename } from 'node:path';
import { ClickHouseError } from '@clickhouse/client';
import { closing, connect, type Store, select, selectOne } from '../../../clickhouse/client.ts';
import { appliedMigrations, UnfinishedRestore } from '../../../clickhouse/migrate/migrate.ts';
import { oneAtATime } from '../../../clickhouse/migrate/one-at-a-time.ts';
import { besideOf } from '../../../clickhouse/restoring.ts';
import { readSettings } from '../../../clickhouse/settings.ts';
import { config, say } from '../command/command.ts';
import { type Archive, leftLinks, removeLink } from './archive.ts';

/**
 * Whoever works with backups of a database holds a statement of this id. On the embedded ClickHouse there is one for all
 * databases: each command removes what any killed one has left in the folder that they share.
 */
const turnOf = (database: string) =>
  config().clickhouse.url ? `adtally-backup-${database}` : 'adtally-backup';
/** The `BACKUP` or `RESTORE` itself, which goes on in the server when the command is killed. */
const statementOf = (database: string) => `adtally-archive-${database}`;
/** It answers when it has ended, and is silent until then. */
const longestTransferMs = 86_400_000;

/**
 * Does `work` on the server while no other backup or restore has the turn, and removes first what a killed one
 * has left, unless that is the complete database of a restore that has to be ended.
 * @param work gets the restore that has to be ended
 */
export async function alone(
  store: Store,
  work: (server: Store, unfinished: UnfinishedRestore | undefined) => Promise<void>,
): Promise<void> {
  const { address } = store;
  const { database } = address;
  const server = connect({ ...address, database: 'default' }, { idleTimeoutMs: longestTransferMs });
  return closing(server, async () => {
    if (await isHeld(server, turnOf(database))) say('waiting for another backup or restore');
    await oneAtATime(server, turnOf(database), async () => {
      await stopTransfer(server, database);
      for (const link of leftLinks()) await removeLink(link);
      const unfinished = await unfinishedRestoreOf(store);
      if (!unfinished && (await isThere(server, besideOf(database)))) {
        await server.command({ query: `DROP DATABASE ${besideOf(database)} SYNC` });
      }
      await work(server, unfinished);
    });
  });
}

function stopTransfer(server: Store, database: string): Promise<unknown> {
  return server.command({ query: `KILL QUERY WHERE query_id = '${statementOf(database)}' SYNC` });
}

/**
 * Runs a `BACKUP` or `RESTORE`, which has ended in the server, too, when this does.
 * @throws with a sentence for what a person has to do about the place
 */
export async function transfer(server: Store, query: string, { name, outside }: Archive): Promise<void> {
  const { database } = config().clickhouse;
  try {
    await server.command({ query, query_id: statementOf(database) });
  } catch (error) {
    // Where the connection was lost. The first failure is the one to tell.
    await stopTransfer(server, database).catch(() => {});
    const type = error instanceof ClickHouseError ? error.type : undefined;
    if (type === 'BACKUP_NOT_FOUND')
      throw new Error(outside ? `${name} is no backup` : `${name}: there is no such backup`);
    // Of a file without the beginning of an archive ClickHouse says that it does not seek as asked (26.7).
    if (type === 'ARGUMENT_OUT_OF_BOUND')
      throw new Error(`${name} is no backup, or is damaged`, { cause: error });
    if (type === 'BACKUP_ALREADY_EXISTS') throw new Error(`${name} is there already: give another name`);
    if (type === undefined || !outside) throw error;
    // The server knows the file by the link alone.
    const reason = (error as Error).message.replaceAll(`${outside.link}/${basename(name)}`, name);
    throw new Error(`${name}: ${reason}`, { cause: error });
  }
}

/** What a killed backup or restore has left, in words; empty while one runs. */
export async function leftOvers(server: Store, database: string): Promise<string[]> {
  if (await isHeld(server, turnOf(database))) return [];
  const beside = besideOf(database);
  return [...((await isThere(server, beside)) ? [`database ${beside}`] : []), ...leftLinks()];
}

async function unfinishedRestoreOf(store: Store): Promise<UnfinishedRestore | undefined> {
  try {
    await appliedMigrations(store);
    return undefined;
  } catch (error) {
    if (error instanceof UnfinishedRestore) return error;
    throw error;
  }
}

async function isThere(server: Store, database: string): Promise<boolean> {
  const found = await select(server, 'SELECT 1 FROM system.databases WHERE name = {database:String}', {
    database,
  });
  return found.length > 0;
}

/** Bytes of its parts on the disk. */
export async function sizeOfDatabase(server: Store, database: string): Promise<number> {
  const { bytes } = await selectOne<{ bytes: number }>(
    server,
    'SELECT toFloat64(sum(bytes_on_disk)) AS bytes FROM system.parts WHERE active AND database = {database:String}',
    { database },
  );
  return bytes;
}

export async function requireOneNode(store: Store): Promise<void> {
  if (!config().clickhouse.cluster && !(await readSettings(store))?.cluster) return;
  throw new Error(
    'this command works on one node; for a cluster see "Backup and restore" in docs/scaling.md',
  );
}

async function isHeld(server: Store, id: string): Promise<boolean> {
  const running = await select(server, 'SELECT 1 FROM system.processes WHERE query_id = {id:String}', { id });
  return running.length > 0;
}
