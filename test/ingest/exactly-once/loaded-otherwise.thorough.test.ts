import { loadedOtherwise } from '../../support/loaded-otherwise-suite.ts';
import { useStore } from '../../support/store.ts';

loadedOtherwise(useStore());
