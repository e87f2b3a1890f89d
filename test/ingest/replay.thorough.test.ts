import { vi } from 'vitest';
import { killedReplay, replayedAs, useRejectedLoads } from '../support/rejected-loads.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
const loads = useRejectedLoads(db);

replayedAs(loads, 'ndjson');
killedReplay(db, loads, 'csv', 4);
killedReplay(db, loads, 'ndjson', 4);
