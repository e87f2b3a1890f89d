import { loadsAlike } from '../../support/matrix-suite.ts';
import { useStore } from '../../support/store.ts';

// All combinations are in matrix.thorough.test.ts.
loadsAlike(
  useStore(),
  [
    ['csv', 'zst', 'stdin'],
    ['parquet', 'whole', 'file'],
  ],
  120,
);
