import { useStore } from '../../support/store.ts';
import { expectTruth } from '../../support/truth-suite.ts';

// Long ones, and on three shards: truth.thorough.test.ts.
expectTruth(useStore(), { seed: 1, changes: 4, services: 2 });
