import { nameIds, recountInNewYork, recountRandomEvents, somePairs } from '../support/oracle-suite.ts';
import { useStore } from '../support/store.ts';

// More seeds, and every account about every range, are in oracle.thorough.test.ts.
recountRandomEvents(useStore, [1], somePairs);
recountInNewYork(useStore, (path) => somePairs(path).filter((_, n) => n % 4 === path % 4));
nameIds(useStore);
