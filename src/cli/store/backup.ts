import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { adviceOn, damagedParts } from '../../../clickhouse/consistency/damaged-parts.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { pendingMigrations } from '../../../clickhouse/migrate/migrate.ts';
import { deadAfterMs } from '../../../clickhouse/timings.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { counted, say } from '../command/command.ts';
import { archiveToWrite, writing } from './archive.ts';
import { alone, requireOneNode, sizeOfDatabase, transfer } from './archive-turn.ts';
import { exclusively } from './exclusively.ts';

/**
 * Verifies the store as `restore` will, and writes a backup, while no load runs; those that begin meanwhile wait. A
 * store of an older version is backed up as it is, without being changed or verified.
 * @throws before any work when nothing can be written at `to`, or there is something already; and when the store does
 * not fit together, because its backup would not be restored
 */
export async function backup(store: Store, to: string): Promise<void> {
  const archive = archiveToWrite(to);
  const { database } = store.address;
  await alone(store, async (server, unfinished) => {
    if (unfinished) throw unfinished;
    await requireOneNode(store);
    const pending = await pendingMigrations(store);
    const bytes = await sizeOfDatabase(server, database);
    const write = () => transfer(server, `BACKUP DATABASE ${database} TO ${archive.target}`, archive);
    await writing(archive, bytes, async () => {
      if (pending.length > 0) return backupOlder(store, write);
      await exclusively(store, 'backup', `backup to ${archive.name}`, async (load) => {
        await requireUndamaged(store);
        await requireSound(store);
        await write();
        load.assertTurnHeld();
      });
    });
    say(`backed up to ${archive.name}; adtally restore ${to} brings it back`);
    if (!archive.outside) {
      say('ClickHouse does not promise that the file is on the disk already: copy it away, which shows it');
    }
  });
}

/** The ledger of an older version is read, and not written: nothing of it may change. */
async function backupOlder(store: Store, write: () => Promise<void>): Promise<void> {
  const migrated = await select(
    store,
    "SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = 'loads'",
  );
  if (migrated.length === 0) throw new Error('there is no store to back up');
  const [running] = await select<{ load_id: string }>(
    store,
    `SELECT load_id FROM loads FINAL WHERE state = 'running' AND version > now64(6) - toIntervalMillisecond({deadAfterMs:UInt32}) LIMIT 1`,
    { deadAfterMs },
  );
  if (running)
    throw new Error(`load ${running.load_id} runs: wait for its end, then run the same command again`);
  say(
    'the store is of an older version: it is backed up as it is, and not verified. Let no load begin meanwhile',
  );
  await write();
}

/** @throws naming a part that ClickHouse goes on without: a backup would not have it, and nothing would tell */
async function requireUndamaged(store: Store): Promise<void> {
  const [damaged] = await damagedParts(store);
  if (damaged) throw new Error(adviceOn(damaged));
}

/** What a backup must have to be restored. @throws when ledger, raw events and rollups do not fit together */
export async function requireSound(store: Store): Promise<void> {
  const ledger = await verifyLedger(store);
  const rollups = await verifyRollups(store, catalog);
  // Chunks of an interrupted load are known to be in doubt, and loading the file again completes them.
  const wrong = ledger.differences.filter(({ inDoubt }) => !inDoubt).length + rollups.differences.length;
  if (wrong > 0) {
    throw new Error(
      `ledger, raw events and rollups have ${counted(wrong, 'difference')}: adtally verify lists them, and tells how to mend them`,
    );
  }
}
