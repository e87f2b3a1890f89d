import { everyCombination, recountAskedReports } from '../support/asked-suite.ts';
import { testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';

recountAskedReports(useStore, 2, everyCombination, { formatsOf: 4 });
recountAskedReports(useStore, testSeed, everyCombination, { accounts: ['both', 'publisher', 'advertiser'] });
