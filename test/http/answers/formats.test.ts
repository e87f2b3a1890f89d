import { compareFormats, someCodings } from '../../support/formats-suite.ts';

// Every path in every coding is in formats.thorough.test.ts.
compareFormats(someCodings);
