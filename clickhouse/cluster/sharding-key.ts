/**
 * Which shard a row lies on. An account lies on one shard, by the hash of its id; the table `placements` says where
 * accounts lie for which that is not so, and over which shards one is spread that is too large for a single one.
 *
 * These are the sharding keys of the Distributed tables: shard numbers from 0, in the order of the cluster.
 */
export interface Sharding {
  /** The database of the store, which has the dictionary of placements. */
  readonly database: string;
  /** How many shards accounts without a placement are hashed over. */
  readonly shards: number;
}

/** What decides where the rows of a table lie: `-- cluster: by …` of a migration. */
export function shardingKey(by: string, sharding: Sharding): string {
  switch (by) {
    case 'account':
      return `${shardsExpression('account_id', sharding)}[1]`;
    // An event lies with its advertiser, or with its publisher when it has no advertiser.
    case 'advertiser':
      return shardExpression(
        "if(advertiser_id = '', publisher_id, advertiser_id)",
        "if(advertiser_id = '', ad_unit_id, campaign_id)",
        sharding,
      );
    case 'publisher':
      return shardExpression('publisher_id', 'ad_unit_id', sharding);
    default:
      return `cityHash64(${by})`;
  }
}

/** Of the shards of an account, the one for a campaign or ad unit: an entity stays together. */
function shardExpression(account: string, entity: string, sharding: Sharding): string {
  const shards = shardsExpression(account, sharding);
  return `${shards}[1 + cityHash64(${entity}) % length(${shards})]`;
}

// Of N + 1 shards, jumpConsistentHash leaves all but one account in N + 1 where it was with N.
function shardsExpression(account: string, { database, shards }: Sharding): string {
  return `dictGetOrDefault('${database}.placement', 'shards', ${account}, [toUInt16(jumpConsistentHash(cityHash64(${account}), ${shards}))])`;
}

/** How many shards accounts are hashed over, as a sharding key says it; undefined for a key that does not. */
export function hashedShardCount(engine: string): number | undefined {
  const count = /jumpConsistentHash\(cityHash64\(.*?\), (\d+)\)/.exec(engine)?.[1];
  return count === undefined ? undefined : Number(count);
}
