import { recountRandomEvents } from '../support/oracle-suite.ts';
import { useStore } from '../support/store.ts';

recountRandomEvents(useStore, [2, 3]);
