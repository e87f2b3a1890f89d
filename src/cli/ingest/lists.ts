import type { Store } from '../../../clickhouse/client.ts';
import { expandFiles } from '../../../ingest/input/expand-files.ts';
import { confirmDays, confirmList, isKnownAccount } from '../../../ingest/lists/confirmations.ts';
import {
  type ListReading,
  type LookupList,
  loadLookupList,
  lookupLists,
} from '../../../ingest/lists/lookup-lists.ts';
import { counted, formatNumber, say, untilReportsShowIt } from '../command.ts';

/** `ingest campaigns` and the other lists. */
export async function ingestLists(
  store: Store,
  list: LookupList,
  args: readonly string[],
  reading: ListReading,
): Promise<void> {
  for (const input of await expandFiles(args)) {
    if (list === lookupLists.confirmations) {
      const { days, changed, running } = await confirmList(store, input, reading);
      await untilReportsShowIt();
      sayConfirmed(input.name, days, changed, running);
    } else {
      const lines = await loadLookupList(store, list, input, reading);
      await untilReportsShowIt();
      say(`${input.name}: ${formatNumber(lines)} ${list.table} loaded`);
    }
  }
}

/** `confirm`: the days of one account from the command line. */
export async function confirmAccount(
  store: Store,
  account: string,
  range: { readonly from: string; readonly to: string },
): Promise<void> {
  const { days, changed, running } = await confirmDays(store, account, range.from, range.to);
  await untilReportsShowIt();
  sayConfirmed(account, days, changed, running);
  // It may be known only tomorrow; more likely it is misspelled.
  if (changed === 0 && !(await isKnownAccount(store, account))) {
    say(`there are no events of an account ${account}: is that its id?`);
  }
}

function sayConfirmed(what: string, days: number, changed: number, running: string | undefined): void {
  say(`${what}: ${counted(days, 'day')} confirmed, ${formatNumber(changed)} of them had unconfirmed revenue`);
  if (running) {
    say(
      `load ${running} was running: what it loads is not confirmed by this; confirm again when it has ended`,
    );
  }
}
