import type { Store } from '../../../clickhouse/client.ts';
import { inOneVersion } from '../../../ingest/input/one-version.ts';
import { confirmDays, confirmList, isKnownAccount } from '../../../ingest/lists/confirmations.ts';
import {
  type ListReading,
  type LookupList,
  loadLookupList,
  lookupLists,
} from '../../../ingest/lists/lookup-lists.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { counted, formatNumber, say, untilReportsShowIt } from '../command.ts';
import { objectStores } from './object-stores.ts';

export interface ListFlags extends ListReading {
  /** Of a store of objects; absent: that of its provider. */
  readonly endpoint?: string;
}

/** `ingest campaigns` and the other lists. */
export async function ingestLists(
  store: Store,
  list: LookupList,
  args: readonly string[],
  { endpoint, ...reading }: ListFlags,
): Promise<void> {
  for (const input of await expandFiles(args, objectStores(endpoint, say))) {
    if (list === lookupLists.confirmations) {
      const { days, changed, running } = await inOneVersion(input, () => confirmList(store, input, reading));
      await untilReportsShowIt();
      sayConfirmed(input.name, days, changed, running);
    } else {
      const lines = await inOneVersion(input, () => loadLookupList(store, list, input, reading));
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
