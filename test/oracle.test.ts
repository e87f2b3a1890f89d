import { nameIds, recountInNewYork, recountRandomEvents } from './oracle-suite.ts';
import { useStore } from './setup/store.ts';

recountRandomEvents(useStore, [1, 2, 3]);
recountInNewYork(useStore);
nameIds(useStore);
