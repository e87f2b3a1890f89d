import { useCluster } from '../support/cluster.ts';
import { loadedOtherwise } from '../support/loaded-otherwise-suite.ts';
import { useClusterStore } from '../support/store.ts';

// The rest of the loader's tests on shards: TEST_SHARDS=3 npx vitest run test/ingest.
loadedOtherwise(useClusterStore(useCluster(2)));
