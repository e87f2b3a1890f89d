import { type Store, select } from '../../../clickhouse/client.ts';
import { layoutOf, shardCount } from '../../../clickhouse/cluster/layout.ts';
import { homeShardExpression } from '../../../clickhouse/cluster/sharding-key.ts';
import { Refreshed } from '../../../clickhouse/refreshed.ts';
import { placementsMaxAgeMs, refreshMs } from '../../../clickhouse/timings.ts';
import type { ShardRouting } from '../../report/plan.ts';

export interface AccountPlacementsOptions {
  readonly store: Store;
  readonly refreshMs?: number;
  readonly now?: () => number;
  readonly onError: (error: unknown) => void;
}

/**
 * Which shards of a cluster a report reads: the one of its account, or all of them if the account's rows are on
 * several. The list of such accounts is kept in memory; while it cannot be read, every report reads all shards.
 */
export class AccountPlacements {
  readonly #store: Store;
  readonly #onSeveralShards: Refreshed<ReadonlySet<string>>;
  #replicated = false;
  #cluster: NonNullable<ShardRouting['cluster']> | undefined;

  constructor({ store, refreshMs: everyMs = refreshMs, ...options }: AccountPlacementsOptions) {
    this.#store = store;
    this.#onSeveralShards = new Refreshed(() => accountsOnSeveralShards(store), {
      everyMs,
      maxAgeMs: placementsMaxAgeMs,
      ...options,
    });
  }

  /** Does nothing more on a single node. @throws when ClickHouse cannot be read */
  async start(): Promise<void> {
    this.stop();
    const layout = await layoutOf(this.#store);
    if (!layout) return;
    this.#replicated = layout.replicated;
    this.#cluster = {
      shards: shardCount(layout.nodes),
      home: homeShardExpression('{account:String}', layout.sharding),
    };
    await this.#onSeveralShards.start();
  }

  stop(): void {
    this.#onSeveralShards.stop();
  }

  /** Undefined on a single node. */
  routingOf(account: string): ShardRouting | undefined {
    const { value, isCurrent } = this.#onSeveralShards;
    if (!value) return undefined;
    return {
      shards: isCurrent && !value.has(account) ? 'one' : 'all',
      database: this.#store.address.database,
      ...(this.#cluster && { cluster: this.#cluster }),
      ...(this.#replicated && { replicated: true }),
    };
  }
}

async function accountsOnSeveralShards(store: Store): Promise<ReadonlySet<string>> {
  const accounts = await select<{ account: string }>(
    store,
    'SELECT account_id AS account FROM placements FINAL WHERE read_all',
  );
  return new Set(accounts.map(({ account }) => account));
}
