import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { adviceOn, damagedParts } from '../../../clickhouse/consistency/damaged-parts.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import type { Load } from '../../../ingest/ledger/load.ts';
import { counted, say } from '../command/command.ts';
import { type Archive, archiveToWrite, writing } from './archive.ts';
import { alone, requireOneNode, sizeOfDatabase, transfer } from './archive-turn.ts';
import { exclusively } from './exclusively.ts';

/**
 * Verifies the store as `restore` will, and writes a backup, while no load runs; those that begin meanwhile wait.
 * @throws before any work when nothing can be written at `to`, or there is something already; and when the store does
 * not fit together, because its backup would not be restored
 */
export async function backup(store: Store, to: string): Promise<void> {
  const archive = archiveToWrite(to);
  const { database } = store.address;
  await alone(store, async (server, unfinished) => {
    // The restore that was waited for may have been killed in its last moment.
    if (unfinished) throw unfinished;
    await requireOneNode(store);
    const bytes = await sizeOfDatabase(server, database);
    await writing(archive, bytes, () =>
      exclusively(store, 'backup', `backup to ${archive.name}`, async (load) => {
        await requireUndamaged(store);
        await requireSound(store);
        await transfer(server, `BACKUP DATABASE ${database} TO ${archive.target}`, archive);
        requireWasAlone(load, archive);
      }),
    );
    say(`backed up to ${archive.name}; adtally restore ${to} brings it back`);
    if (!archive.outside) {
      say('ClickHouse does not promise that the file is on the disk already: copy it away, which shows it');
    }
  });
}

/** @throws where other loads may have run while the backup was written; on a server it has its name by now */
function requireWasAlone(load: Load, { outside, name }: Archive): void {
  try {
    load.assertTurnHeld();
  } catch (cause) {
    if (outside) throw cause;
    throw new Error(
      `other loads may have run while ${name} was written: delete it there, and back up with another name`,
      { cause },
    );
  }
}

/** @throws naming a part that ClickHouse goes on without: a backup would not have it, and nothing would tell */
async function requireUndamaged(store: Store): Promise<void> {
  const [damaged] = await damagedParts(store);
  if (damaged) throw new Error(adviceOn(damaged));
}

/** What a backup must have to be restored. @throws with `advice` when ledger, raw events and rollups do not fit together */
export async function requireSound(
  store: Store,
  advice = 'adtally verify lists them, and tells how to mend them',
): Promise<void> {
  const ledger = await verifyLedger(store);
  const rollups = await verifyRollups(store, catalog);
  // Chunks of an interrupted load are known to be in doubt, and loading the file again completes them.
  const wrong = ledger.differences.filter(({ inDoubt }) => !inDoubt).length + rollups.differences.length;
  if (wrong > 0) {
    throw new Error(`ledger, raw events and rollups have ${counted(wrong, 'difference')}: ${advice}`);
  }
}
