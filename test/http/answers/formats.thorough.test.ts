import { compareFormats, everyCoding } from '../../support/formats-suite.ts';

compareFormats(everyCoding);
