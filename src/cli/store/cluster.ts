import type { Command } from 'commander';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { growCluster, placeAccount } from '../../../clickhouse/placement/place-account.ts';
import { accountId, positiveInteger } from '../command/arguments.ts';
import { counted, say, untilReportsShowIt, withStore } from '../command/command.ts';
import { exclusively } from './exclusively.ts';

/** `place` and `grow`: which shards of a cluster store an account. */
export function addClusterCommands(program: Command): void {
  program
    .command('place')
    .description("choose the shards that store an account's future events")
    .argument('<account>', 'advertiser or publisher', accountId)
    .argument(
      '<shard...>',
      'shard numbers, from 1; several shards divide its campaigns or ad units between them',
      (text, shards: number[] = []) => [...shards, positiveInteger(text)],
    )
    .action((account: string, shards: number[]) => withStore((store) => runPlace(store, account, shards)));
  program
    .command('grow')
    .description('let new accounts use shards that were added to the cluster')
    .action(() => withStore(runGrow));
}

async function runPlace(store: Store, account: string, shards: readonly number[]): Promise<void> {
  const readAll = await exclusively(store, 'place', `placement of ${account}`, (load) =>
    placeAccount(store, catalog, { account, shards }, () => load.assertTurnHeld()),
  );
  await untilReportsShowIt();
  const where = shards.length === 1 ? `shard ${shards[0]}` : `shards ${shards.join(', ')}`;
  say(`events of ${account} go to ${where}; its reports read ${readAll ? 'all shards' : 'that shard'}`);
}

async function runGrow(store: Store): Promise<void> {
  const { from, to, accounts } = await exclusively(store, 'grow', 'placement of new accounts', (load) =>
    growCluster(store, catalog, () => load.assertTurnHeld()),
  );
  await untilReportsShowIt();
  say(
    from === to
      ? `accounts already use all ${to} shards`
      : `new accounts use ${to} shards instead of ${from}; ${counted(accounts, 'account')} stay where they are`,
  );
}
