import type { Command } from 'commander';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import {
  audit,
  dismiss,
  loads,
  previewOfUnload,
  rejects,
  replay,
  showLoad,
  unload,
} from '../../operations/history.ts';
import { usage } from '../command/arguments.ts';
import { counted, exitRejected, formatNumber, say } from '../command/command.ts';
import { addExplain } from './explain.ts';
import { addOperation, type Given, operate, printRows } from './operate.ts';

/** `loads`, `rejects`, `replay`, `explain`, `unload` and `audit`: what was loaded and changed, and the rows that were not loaded. */
export function addHistoryCommands(program: Command): void {
  const history = addOperation(program, loads, [], (given) => operate(loads, given, printRows));
  addOperation(history, showLoad, ['load'], (given) => operate(showLoad, given, printRows));
  addOperation(program, rejects, ['load'], async ({ dismiss: dismisses, ...given }) => {
    if (!dismisses) return operate(rejects, given, printRows);
    // Nobody can list them any more.
    if (given.format !== 'table') throw usage('--dismiss prints no rows: list them first, without it');
    return operate(dismiss, { load: given.load }, ({ dismissed }) =>
      say(`${counted(dismissed, 'rejected row')} dismissed`),
    );
  }).option('--dismiss', 'let go of those of these loads: they are listed and waited for no more');
  addOperation(program, replay, ['load'], replayRows).argument(
    '<file>',
    'the corrected output of "adtally rejects LOAD --csv" or "--json"',
  );
  addExplain(program);
  addOperation(program, unload, ['load'], unloadOne).option('--dry-run', 'only say what would be taken back');
  addOperation(program, audit, [], (given) => operate(audit, given, printRows));
}

async function replayRows({ file, ...given }: Given): Promise<void> {
  await operate(
    replay,
    given,
    ({ replayed, duplicates, faulty, skipped, reasons }) => {
      for (const reason of reasons) say(`still faulty: ${reason}`);
      const more = faulty - reasons.length;
      if (more > 0) {
        say(
          `… and ${formatNumber(more)} more that are still faulty; adtally rejects ${given.load} lists them`,
        );
      }
      say(
        [
          `${counted(replayed, 'row')} replayed`,
          ...(duplicates ? [`${formatNumber(duplicates)} left out: their event_id is already loaded`] : []),
          ...(faulty ? [`${formatNumber(faulty)} still faulty`] : []),
          ...(skipped
            ? [`${formatNumber(skipped)} replayed or dismissed before, or not from load ${given.load}`]
            : []),
        ].join(', '),
      );
      if (faulty > 0) process.exitCode = exitRejected;
    },
    { file: { input: new LocalFile(String(file)) } },
  );
}

async function unloadOne({ dryRun, ...given }: Given): Promise<void> {
  await operate(dryRun ? previewOfUnload : unload, given, (done) => {
    const load = `load ${given.load}`;
    if (done.before) return say(`${load} has been taken back or replaced before`);
    if (done.chunks === 0) return say(`${load}: there is nothing that only it has loaded`);
    const changes = [
      `${counted(done.events, 'event')} deleted`,
      ...(done.rejected_rows ? [`${counted(done.rejected_rows, 'open rejected row')} deleted`] : []),
      ...(done.reopened_rows ? [`${counted(done.reopened_rows, 'rejected row')} open again`] : []),
      `rollups of ${counted(done.months.length, 'month')} rebuilt`,
    ].join(', ');
    say(`${load} ${dryRun ? 'would be' : 'is'} taken back: ${changes}`);
    const months = done.months.length ? ` with events of ${done.months.join(', ')}` : '';
    if (dryRun) say(`nothing was changed; ${counted(done.chunks, 'chunk')}${months} would be forgotten`);
    if (done.replaced.length > 0)
      say(
        `the files of what it had replaced can be loaded again, too: load ${done.replaced.join(', load ')}`,
      );
    for (const { load: later, events } of done.left_out) {
      say(
        `load ${later} left out ${counted(events, 'event')} whose event_id was loaded already: if they were of this load, take load ${later} back and load its file again`,
      );
    }
  });
}
