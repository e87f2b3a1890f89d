import { recountInNewYork, recountRandomEvents } from '../support/oracle-suite.ts';
import { useStore } from '../support/store.ts';

recountRandomEvents(useStore, [1, 2, 3]);
recountInNewYork(useStore);
