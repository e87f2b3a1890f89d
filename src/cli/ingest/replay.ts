import type { Store } from '../../../clickhouse/client.ts';
import { requireLoad } from '../../../ingest/history/load-history.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { describeRejected } from '../../../ingest/rejects/rejected-rows.ts';
import { replay } from '../../../ingest/replay/replay.ts';
import { counted, formatNumber, say, untilReportsShowIt } from '../command.ts';
import { exitRejected } from './events.ts';
import { shownRejects } from './first-rejects.ts';

/** `replay`: loads the corrected rows of a load. Returns the exit code. */
export async function replayRejects(
  store: Store,
  load: string,
  file: string,
  dedupe: boolean,
): Promise<number> {
  await requireLoad(store, load);
  const { replayed, duplicates, skipped, faulty } = await replay(
    store,
    load,
    new LocalFile(file),
    () => new Date(),
    {
      dedupe,
      onWait: (other) => say(`waiting for load ${other}`),
    },
  );
  await untilReportsShowIt();
  for (const row of faulty.slice(0, shownRejects))
    say(`still faulty: ${describeRejected(load, 'line', row)}`);
  if (faulty.length > shownRejects)
    say(
      `… and ${formatNumber(faulty.length - shownRejects)} more that are still faulty; adtally rejects ${load} lists them`,
    );
  say(
    [
      `${counted(replayed, 'row')} replayed`,
      ...(duplicates ? [`${formatNumber(duplicates)} left out: their event_id is already loaded`] : []),
      ...(faulty.length ? [`${formatNumber(faulty.length)} still faulty`] : []),
      ...(skipped ? [`${formatNumber(skipped)} replayed before or not from load ${load}`] : []),
    ].join(', '),
  );
  return faulty.length > 0 ? exitRejected : 0;
}
