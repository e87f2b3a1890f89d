import type { Store } from '../../../clickhouse/client.ts';
import { inTurn } from '../../../ingest/history/in-turn.ts';
import type { Load } from '../../../ingest/ledger/load.ts';
import { commandLine, recorded } from '../../operations/audit.ts';
import { say } from '../command/command.ts';

/** Work of a command in its turn; the audit log lists it by the command. */
export function exclusively<T>(
  store: Store,
  operation: string,
  file: string,
  work: (load: Load) => Promise<T>,
): Promise<T> {
  const onWait = (other: string) => say(`waiting for load ${other}`);
  return recorded(store, commandLine(), { operation, input: { what: file } }, async () => {
    return { result: await inTurn(store, file, new Date(), { onWait }, work), outcome: {} };
  });
}
