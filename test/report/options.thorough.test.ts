import { vi } from 'vitest';
import { everyCombination, recountAskedReports } from '../support/asked-suite.ts';
import { testSeed } from '../support/random.ts';
import { useStore } from '../support/store.ts';

// 29 combinations, three accounts or five formats of each.
vi.setConfig({ testTimeout: 300_000 });
recountAskedReports(useStore, 2, everyCombination, { formatsOf: 4 });
recountAskedReports(useStore, testSeed, everyCombination, { accounts: ['both', 'publisher', 'advertiser'] });
