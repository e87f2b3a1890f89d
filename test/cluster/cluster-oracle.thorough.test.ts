import { recountAskedReports } from '../support/asked-suite.ts';
import { useCluster } from '../support/cluster.ts';
import { someCombinations } from '../support/combinations.ts';
import { recountInNewYork, recountRandomEvents, somePairs } from '../support/oracle-suite.ts';
import { useClusterStore } from '../support/store.ts';

// The same suite as on a single node. CLUSTER_SEEDS=1,2,3 recounts more than one seed.
const seeds = (process.env.CLUSTER_SEEDS ?? '1').split(',').map(Number);
const cluster = useCluster(3);
const useStore = (reportTimezone?: string) => useClusterStore(cluster, reportTimezone);

recountRandomEvents(useStore, seeds, somePairs);
recountInNewYork(useStore, somePairs);
// Each pair of options, and a third of the rest.
const combinations = (path: number) =>
  someCombinations(path).filter((options, n) => options.length === 2 || (n + path) % 3 === 0);
recountAskedReports(useStore, 1, combinations, ['both', 'publisher', 'advertiser']);
