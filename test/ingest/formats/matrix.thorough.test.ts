import { loadsAlike, wholeMatrix } from '../../support/matrix-suite.ts';
import { useStore } from '../../support/store.ts';

loadsAlike(useStore(), wholeMatrix, 600);
