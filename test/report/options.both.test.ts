import { recountAskedReports } from '../support/asked-suite.ts';
import { manyCombinations, someCombinations } from '../support/combinations.ts';
import { thorough } from '../support/mode.ts';
import { testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';

if (thorough) recountAskedReports(useStore, testSeed, manyCombinations, ['both', 'publisher', 'advertiser']);
else recountAskedReports(useStore, 1, someCombinations);
