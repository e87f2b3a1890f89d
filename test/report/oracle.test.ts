import { nameIds, recountInNewYork, recountRandomEvents, somePairs } from '../support/oracle-suite.ts';
import { useStore } from '../support/store.ts';

// More seeds, and every account about every range, are in oracle.thorough.test.ts.
recountRandomEvents(useStore, [1], somePairs);
recountInNewYork(useStore, somePairs);
nameIds(useStore);
