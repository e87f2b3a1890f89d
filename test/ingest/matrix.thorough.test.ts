import { vi } from 'vitest';
import { loadsAlike, wholeMatrix } from '../support/matrix-suite.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 300_000 });

loadsAlike(useStore(), wholeMatrix, 600);
