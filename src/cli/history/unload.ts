import type { Store } from '../../../clickhouse/client.ts';
import { previewUnload, type Unloaded, unload } from '../../../ingest/history/unload.ts';
import { counted, say, untilReportsShowIt } from '../command.ts';

/** `unload`: takes a load back and says what is gone, or with `--dry-run` what would be. */
export async function unloadLoad(store: Store, load: string, dryRun: boolean): Promise<void> {
  const onWait = (other: string) => say(`waiting for load ${other}`);
  const done = dryRun
    ? await previewUnload(store, load)
    : await unload(store, load, () => new Date(), { onWait });
  if (!dryRun) await untilReportsShowIt();
  if (done.before) return say(`load ${load} has been taken back before`);
  if (done.chunks === 0) return say(`load ${load}: there is nothing that only it has loaded`);
  if (!dryRun) return say(`load ${load} is taken back: ${describe(done)}`);
  say(`load ${load} would be taken back: ${describe(done)}`);
  const months = done.months.length ? ` with events of ${done.months.join(', ')}` : '';
  say(`nothing was changed; ${counted(done.chunks, 'chunk')}${months} would be forgotten`);
}

function describe({ events, rejectedRows, reopenedRows, months }: Unloaded): string {
  return [
    `${counted(events, 'event')} deleted`,
    ...(rejectedRows ? [`${counted(rejectedRows, 'open rejected row')} deleted`] : []),
    ...(reopenedRows ? [`${counted(reopenedRows, 'rejected row')} open again`] : []),
    `rollups of ${counted(months.length, 'month')} rebuilt`,
  ].join(', ');
}
