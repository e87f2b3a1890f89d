import { createHash } from 'node:crypto';
import { Command } from 'commander';

/**
 * How uneven the shards of a cluster get with accounts whose sizes follow Zipf's law, each on the shard given by the
 * hash of its id, as in clickhouse/cluster/sharding-key.ts. `node --import tsx bench/cluster/skew.ts`
 */
const { accounts, exponent, runs } = new Command('skew')
  .option('--accounts <n>', 'accounts', Number, 20_000)
  .option('--exponent <s>', 'the n-th largest account has 1/n^s of the events of the largest', Number, 1)
  .option('--runs <n>', 'other ids each time; the median is shown', Number, 21)
  .parse()
  .opts<{ accounts: number; exponent: number; runs: number }>();

const sizes = Array.from({ length: accounts }, (_, n) => 1 / (n + 1) ** exponent);
const all = sum(sizes);

console.table(
  [2, 4, 8, 16, 32].map((shards) => {
    const giants = sizes.filter((size) => size > all / shards / 4).length;
    return {
      shards,
      'largest account, of an even shard': percent((sizes[0] ?? 0) / (all / shards)),
      'fullest shard, of an even one': percent(fullestShard(shards, 0)),
      'accounts over a quarter of a shard': giants,
      'fullest shard with these spread': percent(fullestShard(shards, giants)),
    };
  }),
);

/** The fullest shard as a multiple of an even one, with the `spread` largest accounts on all shards. */
function fullestShard(shards: number, spread: number): number {
  const fullest = Array.from({ length: runs }, (_, run) => {
    const filled = Array.from({ length: shards }, () => sum(sizes.slice(0, spread)) / shards);
    for (let n = spread; n < accounts; n++) {
      const shard = jumpHash(hash(`run-${run} account-${n}`), shards);
      filled[shard] = (filled[shard] ?? 0) + (sizes[n] ?? 0);
    }
    return Math.max(...filled) / (all / shards);
  });
  return fullest.sort((a, b) => a - b)[runs >> 1] ?? Number.NaN;
}

function hash(id: string): bigint {
  return createHash('md5').update(id).digest().readBigUInt64LE();
}

/** Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm": the same as ClickHouse's jumpConsistentHash. */
function jumpHash(key: bigint, buckets: number): number {
  let [bucket, next, state] = [-1, 0, key];
  while (next < buckets) {
    bucket = next;
    state = (state * 2862933555777941757n + 1n) & 0xffff_ffff_ffff_ffffn;
    next = Math.floor((bucket + 1) * (2 ** 31 / Number((state >> 33n) + 1n)));
  }
  return bucket;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
