/**
 * What decides the shard of a row. By default an account is stored on one shard, chosen by the hash of its id. The
 * table `placements` lists the exceptions: accounts pinned to another shard, and accounts too large for one shard
 * that are spread over several.
 *
 * Sharding keys are those of the Distributed tables: shard numbers from 0, in the order of the cluster.
 */
export interface Sharding {
  /** The database of the store, which holds the dictionary of placements. */
  readonly database: string;
  /** How many shards accounts without a placement are hashed over. */
  readonly shards: number;
  /**
   * How many shards there were when the store was made. Rows of no account are hashed over these: of two versions of a
   * row both have to be on one shard, or both count, and ClickHouse itself would hash over all shards that it knows.
   */
  readonly firstShards: number;
}

/** The sharding key of a table. @param by what follows `-- cluster: by` in its migration */
export function shardingKey(by: string, sharding: Sharding): string {
  switch (by) {
    case 'account':
      return `${shardsExpression('account_id', sharding)}[1]`;
    // An event is stored with its advertiser, or with its publisher when it has no advertiser.
    case 'advertiser':
      return shardExpression(
        "if(advertiser_id = '', publisher_id, advertiser_id)",
        "if(advertiser_id = '', ad_unit_id, campaign_id)",
        sharding,
      );
    // A record of the input: an event as above, a rejected row with its chunk.
    case 'record':
      return `if(empty(faults), ${shardingKey('advertiser', sharding)}, ${shardingKey('chunk', sharding)})`;
    case 'publisher':
      return shardExpression('publisher_id', 'ad_unit_id', sharding);
    default:
      return `cityHash64(${by}) % ${sharding.firstShards}`;
  }
}

/** SQL for the number, from 1, of the shard of an account that is on one. @param account SQL, too */
export function homeShardExpression(account: string, sharding: Sharding): string {
  return `(1 + ${shardsExpression(account, sharding)}[1])`;
}

/** SQL for one of the shards of an account, chosen by campaign or ad unit so that an entity stays together. */
function shardExpression(account: string, entity: string, sharding: Sharding): string {
  const shards = shardsExpression(account, sharding);
  return `${shards}[1 + cityHash64(${entity}) % length(${shards})]`;
}

/** SQL for the array of shards of an account. jumpConsistentHash: an added shard N moves only 1 in N accounts. */
function shardsExpression(account: string, { database, shards }: Sharding): string {
  return `dictGetOrDefault('${database}.placement', 'shards', ${account}, [toUInt16(jumpConsistentHash(cityHash64(${account}), ${shards}))])`;
}
