import type { Command } from 'commander';
import { closedRows, closeMonths, closes, daysOf, manifest } from '../../operations/closes.ts';
import { usage } from '../command/arguments.ts';
import { config, counted, line, print, say } from '../command/command.ts';
import { addList, addOperation, operate, printRows } from '../operations/operate.ts';
import { addCheckManifest } from './check-manifest.ts';

interface CloseFlags {
  readonly all?: boolean;
  readonly anyway?: boolean;
  readonly json?: boolean;
}

/** `close`, `closes` with what was closed, and `check-manifest`. */
export function addCloseCommands(program: Command): void {
  program
    .command('close')
    .description(closeMonths.summary)
    .argument('<what...>', 'ACCOUNT and month, yyyy-mm; with --all the month alone')
    .option('--all', 'of every account that has rows in the month')
    .option('--anyway', 'although days are unconfirmed, rejected rows are open or the month has not ended')
    .option('--json', 'print JSON')
    .action(close);
  const list = addList(program, closes, ({ closed_at, rows, unconfirmed, open_rejects, ...close }) => {
    const left = [
      ...(unconfirmed.length > 0 ? [`${counted(daysOf(unconfirmed), 'day')} unconfirmed`] : []),
      ...(open_rejects > 0 ? [`${counted(open_rejects, 'rejected row')} open`] : []),
    ];
    const at = `${closed_at.slice(0, 19).replace('T', ' ')} UTC`;
    return [line([close.account, close.month, at, counted(rows, 'row'), left.join(', '), close.revision])];
  });
  addOperation(list, closedRows, ['revision'], (given) => operate(closedRows, given, printRows));
  addOperation(list, manifest, ['revision'], (given) => operate(manifest, given, printRows));
  addCheckManifest(program);
}

/** `close`. @throws after all others were closed, when an account was not ready */
async function close(
  what: readonly string[],
  { all = false, anyway = false, json }: CloseFlags,
): Promise<void> {
  if (what.length !== (all ? 1 : 2)) {
    throw usage(all ? '--all takes the month alone' : 'give an account and a month, or --all and a month');
  }
  const [month, account] = what.toReversed();
  await operate(closeMonths, { month, account, all, anyway }, ({ closed, unready }) => {
    if (closed.length + unready.length === 0)
      say(`no account has rows in ${month}: there is nothing to close`);
    if (json) print(JSON.stringify(closed));
    else {
      for (const { account, before, closed_at, rows, revision } of closed) {
        const told = before
          ? `${account} ${month} is closed with these rows since ${closed_at}`
          : `closed ${account} ${month}: ${counted(rows, 'row')}${config().signing?.signs ? '' : ', not signed'}`;
        say(line([told]));
        print(revision);
      }
    }
    const left = unready.map(({ account, reasons }) =>
      line([`${account} ${month} is not closed: ${reasons.join(', ')}`]),
    );
    if (left.length > 0)
      throw new Error(
        [...left, '--anyway closes them all the same; adtally closes then shows what was open'].join('\n'),
      );
  });
}
