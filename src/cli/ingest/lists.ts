import type { Store } from '../../../clickhouse/client.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { isOfInput, loadFailure } from '../../../ingest/ledger/load-error.ts';
import type { ListReading } from '../../../ingest/lists/lookup-lists.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { confirm, lists } from '../../operations/lists.ts';
import { counted, formatNumber, say, stopOnSignal } from '../command/command.ts';
import { type Given, operate, performIn } from '../operations/operate.ts';
import { follow } from './follow.ts';
import { objectStores } from './object-stores.ts';

export interface ListFlags extends ListReading {
  /** Milliseconds between looks for new files; absent: those that are there are loaded once. */
  readonly follow?: number;
  /** Of a store of objects; absent: that of its provider. */
  readonly endpoint?: string;
}

/** `ingest campaigns` and the other lists. */
export async function ingestLists(
  store: Store,
  name: keyof typeof lists,
  args: readonly string[],
  { follow: everyMs, endpoint, ...reading }: ListFlags,
): Promise<void> {
  const stores = objectStores(endpoint);
  const load = async (input: Input) => {
    const file = { input, ...reading };
    if (name === 'confirmations') {
      sayConfirmed(input.name, await performIn(store, lists.confirmations, {}, file));
    } else {
      const { lines } = await performIn(store, lists[name], {}, file);
      say(`${input.name}: ${counted(lines, 'line')} of ${name} loaded`);
    }
  };
  if (everyMs === undefined) {
    for (const input of await expandFiles(args, stores)) await load(input);
    return;
  }
  const { signal, release } = stopOnSignal();
  try {
    await follow({
      ...{ store, signal, places: args, everyMs },
      // An unload takes no names back, and to confirm again would confirm what was loaded since.
      ...{ reading: `${name} ${JSON.stringify(reading)}`, canBeUnloaded: false },
      find: (onFailed) => expandFiles(args, stores, { mayBeEmpty: true, signal, onFailed }),
      load: async (files, { onLoaded, onFailed }) => {
        for (const input of files) {
          if (signal.aborted) return;
          try {
            await load(input);
          } catch (cause) {
            const error = loadFailure(cause, input.name, signal);
            if (!isOfInput(error)) throw cause;
            onFailed(input, error);
            continue;
          }
          await onLoaded(input);
        }
      },
    });
  } finally {
    release();
  }
}

/** `confirm`: the days of one account from the command line. */
export async function confirmAccount(given: Given): Promise<void> {
  const tell = (done: Confirmed & { known: boolean }) => {
    sayConfirmed(String(given.account), done);
    // It may be known only tomorrow; more likely it is misspelled.
    if (!done.known) say(`there are no events of an account ${given.account}: is that its id?`);
  };
  await operate(confirm, given, tell, { mayBeNew: true });
}

type Confirmed = Awaited<ReturnType<typeof lists.confirmations.run>>;

function sayConfirmed(what: string, { days, changed, running }: Confirmed): void {
  say(`${what}: ${counted(days, 'day')} confirmed, ${formatNumber(changed)} of them had unconfirmed revenue`);
  if (running) {
    say(
      `load ${running} was running: what it loads is not confirmed by this; confirm again when it has ended`,
    );
  }
}
