import { vi } from 'vitest';
import { killedAndRepeated, useDedupedLoads } from '../support/deduped-loads.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

killedAndRepeated(useDedupedLoads(useStore()), 4, 1_000);
