import { fuzzService } from '../../support/fuzz-suite.ts';

// More requests are in fuzz.thorough.test.ts.
fuzzService(400);
