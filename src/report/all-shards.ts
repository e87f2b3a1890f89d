import type { Store } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import type { ShardRouting } from './plan.ts';

/** For what has to read all shards, because an account may have been moved; undefined on a single node. */
export async function allShardsOf(store: Store): Promise<ShardRouting | undefined> {
  const layout = await layoutOf(store);
  return layout && { shards: 'all', database: store.address.database };
}
