import { fuzzService } from '../../support/fuzz-suite.ts';

// As many as one likes: test/long/fuzz.ts.
fuzzService(3_000);
