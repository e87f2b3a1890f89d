import { afterAll, beforeAll } from 'vitest';
import { type Cluster, type ClusterOptions, clusterName } from '../../bench/cluster/local-cluster.ts';
import { localCluster } from './compiled.ts';

/** A cluster for the tests of one file. */
export function useCluster(size: number, options: ClusterOptions = {}): Cluster {
  let cluster: Cluster | undefined;
  beforeAll(async () => {
    const { startCluster } = await localCluster();
    cluster = await startCluster(size, options);
  });
  afterAll(() => cluster?.stop());
  const get = (): Cluster => {
    if (!cluster) throw new Error('the cluster is there from beforeAll on');
    return cluster;
  };
  return {
    name: clusterName,
    get nodes() {
      return get().nodes;
    },
    answers: () => get().answers(),
    resize: (shards) => get().resize(shards),
    stop: () => get().stop(),
  };
}
