import { vi } from 'vitest';
import { replayedAs, useRejectedLoads } from '../support/rejected-loads.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
const loads = useRejectedLoads(db);

replayedAs(db, loads, 'csv', 4);
replayedAs(db, loads, 'ndjson', 4);
