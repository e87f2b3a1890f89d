import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { recorded } from '../../src/operations/audit.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

test('work that is done is done where its record cannot be ended: the entry stays begun', async () => {
  const rename = (from: string, to: string) => db.store.command({ query: `RENAME TABLE ${from} TO ${to}` });
  const done = await recorded(db.store, { who: 'root@here' }, { operation: 'prune', input: {} }, async () => {
    await rename('audit', 'audit_away');
    return { result: 'pruned', outcome: {} };
  });
  expect(done).toBe('pruned');
  await rename('audit_away', 'audit');
  const states = await select(db.store, 'SELECT who, toString(state) AS state FROM audit FINAL');
  expect(states).toEqual([{ who: 'root@here', state: 'begun' }]);
});
