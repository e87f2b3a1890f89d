import { nameIds, recountInNewYork, recountRandomEvents } from '../support/oracle-suite.ts';
import { useStore } from '../support/store.ts';

// More seeds are in oracle.thorough.test.ts.
recountRandomEvents(useStore, [1]);
recountInNewYork(useStore);
nameIds(useStore);
