import { vi } from 'vitest';
import { loadsAlike } from '../support/matrix-suite.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 120_000 });

// All combinations are in matrix.thorough.test.ts.
loadsAlike(
  useStore(),
  [
    ['csv', 'zst', 'stdin'],
    ['parquet', 'whole', 'file'],
  ],
  120,
);
