import type { Store } from '../../../clickhouse/client.ts';
import { requireMigrated } from '../../../clickhouse/migrate/migrate.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { counted, say, untilReportsShowIt } from '../command.ts';

/** `unload`: takes a load back and says what is gone. */
export async function unloadLoad(store: Store, load: string): Promise<void> {
  await requireMigrated(store);
  const done = await unload(store, load, () => new Date(), {
    onWait: (other) => say(`waiting for load ${other}`),
  });
  await untilReportsShowIt();
  if (done.before) return say(`load ${load} has been taken back before`);
  if (done.chunks === 0) return say(`load ${load}: there is nothing that only it has loaded`);
  say(
    [
      `load ${load} is taken back: ${counted(done.events, 'event')} deleted`,
      ...(done.rejectedRows ? [`${counted(done.rejectedRows, 'open rejected row')} deleted`] : []),
      ...(done.reopenedRows ? [`${counted(done.reopenedRows, 'rejected row')} open again`] : []),
      `rollups of ${counted(done.months, 'month')} rebuilt`,
    ].join(', '),
  );
}
