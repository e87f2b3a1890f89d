import { recountAskedReports, someCombinations } from '../support/asked-suite.ts';
import { useStore } from '../support/store.ts';

// All pairs, in all formats, are in options.thorough.test.ts.
recountAskedReports(useStore, 1, someCombinations);
