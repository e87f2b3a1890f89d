import { useCluster } from '../support/cluster.ts';
import { useClusterStore } from '../support/store.ts';
import { expectTruth } from '../support/truth-suite.ts';

const cluster = useCluster(3);

expectTruth(useClusterStore(cluster), { seed: 5, changes: 16, services: 2, cluster: true });
