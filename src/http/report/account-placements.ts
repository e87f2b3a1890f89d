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
  readonly #placements: Refreshed<Placements | undefined>;

  constructor({ store, refreshMs: everyMs = refreshMs, ...options }: AccountPlacementsOptions) {
    this.#store = store;
    this.#placements = new Refreshed(() => readPlacements(store), {
      everyMs,
      maxAgeMs: placementsMaxAgeMs,
      ...options,
    });
  }

  /** Does nothing more on a single node. @throws when ClickHouse cannot be read */
  async start(): Promise<void> {
    this.stop();
    if (await layoutOf(this.#store)) await this.#placements.start();
  }

  stop(): void {
    this.#placements.stop();
  }

  /** Undefined on a single node. */
  routingOf(account: string): ShardRouting | undefined {
    const { value, isCurrent } = this.#placements;
    if (!value) return undefined;
    const { onSeveralShards, routing } = value;
    return { shards: isCurrent && !onSeveralShards.has(account) ? 'one' : 'all', ...routing };
  }
}

interface Placements {
  readonly onSeveralShards: ReadonlySet<string>;
  /** The same for every account. */
  readonly routing: Omit<ShardRouting, 'shards'>;
}

async function readPlacements(store: Store): Promise<Placements | undefined> {
  const layout = await layoutOf(store);
  if (!layout) return undefined;
  const accounts = await select<{ account: string }>(
    store,
    'SELECT account_id AS account FROM placements FINAL WHERE read_all',
  );
  return {
    onSeveralShards: new Set(accounts.map(({ account }) => account)),
    routing: {
      database: store.address.database,
      cluster: {
        shards: shardCount(layout.nodes),
        home: homeShardExpression('{account:String}', layout.sharding),
      },
      ...(layout.replicated && { replicated: true }),
    },
  };
}
