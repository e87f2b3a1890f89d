import { useCluster } from '../support/cluster.ts';
import { completedAfterEachStep, replacedBesideReaders } from '../support/replace-suite.ts';
import { useService } from '../support/service.ts';
import { useClusterStore } from '../support/store.ts';
import { useUnloads } from '../support/unloads.ts';

// The rest on shards: TEST_SHARDS=3 npx vitest run test/ingest/corrections/replace.test.ts.
const db = useClusterStore(useCluster(2));
const loads = useUnloads(db);
replacedBesideReaders(db, useService(db), loads, 'two months');
completedAfterEachStep(db, loads, 'days');
