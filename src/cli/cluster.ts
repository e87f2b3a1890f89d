import type { Command } from 'commander';
import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { growCluster, placeAccount } from '../../clickhouse/cluster/place-account.ts';
import { accountId, positiveInteger } from './arguments.ts';
import { exclusively } from './maintenance.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** `place` and `grow`: where in a cluster accounts lie. */
export function addClusterCommands(
  program: Command,
  withStore: (work: (store: Store) => Promise<void>) => Promise<void>,
): void {
  program
    .command('place')
    .description('in a cluster: send what is loaded of an account from now on to these shards')
    .argument('<account>', 'advertiser or publisher', accountId)
    .argument(
      '<shard...>',
      'numbers of shards, from 1; several share its campaigns or ad units',
      (text, shards: number[] = []) => [...shards, positiveInteger(text)],
    )
    .action((account: string, shards: number[]) => withStore((store) => runPlace(store, account, shards)));
  program
    .command('grow')
    .description('in a cluster: let new accounts use the shards that were added')
    .action(() => withStore(runGrow));
}

async function runPlace(store: Store, account: string, shards: readonly number[]): Promise<void> {
  const readAll = await exclusively(store, `placement of ${account}`, () =>
    placeAccount(store, catalog, { account, shards }),
  );
  const where = shards.length === 1 ? `shard ${shards[0]}` : `shards ${shards.join(', ')}`;
  say(`events of ${account} go to ${where}; its reports ask ${readAll ? 'all shards' : 'that shard'}`);
}

async function runGrow(store: Store): Promise<void> {
  const { from, to, accounts } = await exclusively(store, 'placement of new accounts', () =>
    growCluster(store, catalog),
  );
  say(
    from === to
      ? `accounts use all ${to} shards`
      : `new accounts use ${to} shards instead of ${from}; ${accounts} accounts stay where they are`,
  );
}
