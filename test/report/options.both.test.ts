import { everyCombination, recountAskedReports, someCombinations } from '../support/asked-suite.ts';
import { thorough } from '../support/mode.ts';
import { testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';

if (thorough) recountAskedReports(useStore, testSeed, everyCombination, ['both', 'publisher', 'advertiser']);
else recountAskedReports(useStore, 1, someCombinations);
