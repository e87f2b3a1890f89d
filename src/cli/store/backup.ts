import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { usage } from '../arguments.ts';
import { config, counted, say, untilReportsShowIt } from '../command.ts';
import { exclusively } from './exclusively.ts';
import { s3Target } from './s3-target.ts';

/** Where a backup is, as ClickHouse is told, and what brings it to or from there. */
interface Place {
  /** `File('…')` or `S3('…', …)` */
  readonly target: string;
  /** For people: without secrets. */
  readonly name: string;
  /** In the folder of the embedded ClickHouse, and where the caller wants it. */
  readonly moved?: { readonly inside: string; readonly outside: string };
}

/**
 * Writes a backup while no load runs; those that begin meanwhile wait.
 * @throws when there is something at `to` already, its folder is missing, or for a cluster
 */
export async function backup(store: Store, to: string): Promise<void> {
  await requireOneNode(store);
  const { target, name, moved } = await placeOf(to);
  if (moved && existsSync(moved.outside)) throw usage(`${name} is there already: give another name`);
  if (moved && !existsSync(dirname(moved.outside)))
    throw usage(`${name}: there is no folder ${dirname(moved.outside)}`);
  try {
    await exclusively(store, `backup to ${name}`, async () => {
      await store.command({ query: `BACKUP DATABASE ${store.address.database} TO ${target}` });
    });
    if (moved) await move(moved.inside, moved.outside);
  } finally {
    if (moved) await rm(moved.inside, { recursive: true, force: true });
  }
  say(`backed up to ${name}; adtally restore ${to} brings it back`);
}

export interface RestoreFlags {
  /** Replaces what is in the database. */
  readonly replace?: boolean;
}

/**
 * Brings a backup back. What is in the database is backed up first, and comes back if the backup cannot be restored,
 * migrated or verified. Nothing else may use the database meanwhile.
 * @param afterwards brings the restored database to this version, and verifies it
 * @throws when there is data and `replace` is not said, the backup cannot be read, or what it has does not fit
 */
export async function restore(
  server: Store,
  from: string,
  { replace = false }: RestoreFlags,
  afterwards: () => Promise<void>,
): Promise<void> {
  await requireOneNode(server);
  const { database } = config().clickhouse;
  const { target, name, moved } = await placeOf(from);
  const full = await hasData(server, database);
  if (full && !replace)
    throw usage(`database ${database} has data: --replace drops it for that of the backup`);
  const kept = full ? `before-restore-${randomBytes(4).toString('hex')}` : undefined;
  const run = (query: string) => server.command({ query });
  try {
    if (moved) await cp(moved.outside, moved.inside, { recursive: true, errorOnExist: true, force: false });
    if (kept) {
      await run(`BACKUP DATABASE ${database} TO File('${kept}')`);
      say(`what the database has is kept as ${kept} in the folder backups of ClickHouse`);
    }
    await run(`DROP DATABASE IF EXISTS ${database} SYNC`);
    let restored = false;
    try {
      await run(`RESTORE DATABASE ${database} FROM ${target}`);
      restored = true;
      await afterwards();
    } catch (error) {
      // Data that does not fit together is better than none, but not than what was there.
      if (kept || !restored) await run(`DROP DATABASE IF EXISTS ${database} SYNC`);
      // If this fails, too, it is still there.
      if (kept) await run(`RESTORE DATABASE ${database} FROM File('${kept}')`);
      if (kept) say(`the backup was not restored; the database has what it had before`);
      if (kept && moved) await rm(join(dirname(moved.inside), kept), { recursive: true, force: true });
      throw error;
    }
    // On a server it stays: its files are out of reach.
    if (kept && moved) await rm(join(dirname(moved.inside), kept), { recursive: true, force: true });
  } finally {
    if (moved) await rm(moved.inside, { recursive: true, force: true });
  }
  await untilReportsShowIt();
  say(`restored from ${name}`);
  say(
    'tokens that were revoked since the backup are valid again: adtally token list; then load the files since',
  );
}

/** @throws when what was restored does not fit together */
export async function verifyRestored(store: Store): Promise<void> {
  // The backup holds itself, as a load that still runs.
  await store.command({
    query: `INSERT INTO loads SELECT * REPLACE ('loaded' AS state, now64(3) AS finished_at, now64(6) AS version)
            FROM (SELECT * FROM loads FINAL WHERE kind = 'rebuild' AND state = 'running' AND startsWith(file, 'backup to '))`,
  });
  const ledger = await verifyLedger(store);
  const rollups = await verifyRollups(store, catalog);
  const wrong = ledger.differences.filter(({ inDoubt }) => !inDoubt).length + rollups.differences.length;
  if (wrong > 0)
    throw new Error(`the restored data has ${counted(wrong, 'difference')}: adtally verify lists them`);
  say('ledger, raw events and rollups of the backup agree');
}

async function placeOf(place: string): Promise<Place> {
  const s3 = s3Target(place, process.env);
  const { clickhouse, dataDir } = config();
  if (s3 && !clickhouse.url) {
    // It has no threads for that: "BackupsIOThreadPool is not initialized".
    throw usage('the embedded ClickHouse cannot write to S3: back up to a file, and copy that');
  }
  if (s3) return s3;
  if (clickhouse.url) {
    // A path would be one of the server, outside of what it may write.
    if (!/^[\w.-]+$/.test(place)) {
      throw usage(
        `${place}: give a name in the folder backups of ClickHouse, such as 2026-11-20.tar.zst, or s3://…`,
      );
    }
    return { target: `File('${place}')`, name: `${place} in the folder backups of ClickHouse` };
  }
  const ending = /\.(tar|tar\.gz|tgz|tar\.zst)$/.exec(place)?.[0] ?? '';
  const inside = `adtally-${randomBytes(6).toString('hex')}${ending}`;
  const folder = resolve(dataDir, 'store/backups');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const outside = resolve(place);
  return { target: `File('${inside}')`, name: outside, moved: { inside: join(folder, inside), outside } };
}

/** Also to another disk. */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error;
    await cp(from, to, { recursive: true, errorOnExist: true, force: false });
    await rm(from, { recursive: true });
  }
}

async function requireOneNode(server: Store): Promise<void> {
  const { database, cluster } = config().clickhouse;
  const spread = await select(
    server,
    "SELECT 1 FROM system.tables WHERE database = {database:String} AND name = 'events' AND engine = 'Distributed'",
    { database },
  );
  if (!cluster && spread.length === 0) return;
  throw new Error(
    'this command works on one node; for a cluster see "Backup and restore" in docs/scaling.md',
  );
}

async function hasData(server: Store, database: string): Promise<boolean> {
  const found = await select(
    server,
    `SELECT 1 FROM system.parts WHERE active AND database = {database:String} AND table != 'migrations' AND rows > 0 LIMIT 1`,
    { database },
  );
  return found.length > 0;
}
