import { describe, vi } from 'vitest';
import { type Kind, killedReplay, useRejectedLoads } from '../support/rejected-loads.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

const db = useStore();
const loads = useRejectedLoads(db);

describe.each<Kind>(['csv', 'ndjson'])('rejected rows, exported as %s', (kind) => {
  killedReplay(db, loads, kind, 4);
});
