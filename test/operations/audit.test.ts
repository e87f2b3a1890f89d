import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { recorded, writeAudit } from '../../src/operations/audit.ts';
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

async function listed() {
  const out = new PassThrough();
  const written = text(out);
  await writeAudit(db.store, out, 'json', { limit: 10 });
  out.end();
  return JSON.parse(await written);
}

test('the list as JSON has what was done as it was said, whatever it is', async () => {
  await db.store.command({ query: 'TRUNCATE TABLE audit' });
  expect(await listed()).toEqual([]);
  const deep = JSON.parse(`${'['.repeat(1500)}${']'.repeat(1500)}`);
  const input = {
    ...{ label: '\ud800 "☃"\n', requests: null, at: '2026-11-01T00:00:00Z', 'x.y': 1, x: { y: 2 } },
    ...{ deep, count: 2 ** 53 - 1, list: [1, 'a', null] },
  };
  await recorded(db.store, { who: 'ünter' }, { operation: 'limit set', input }, async () => ({
    result: undefined,
    outcome: ['a', null],
  }));
  await expect(
    recorded(db.store, { who: 'b', token: 'id' }, { operation: 'unload', input: {} }, async () => {
      throw new Error('there is no load \ud800');
    }),
  ).rejects.toThrow();
  expect(await listed()).toEqual([
    expect.objectContaining({ state: 'failed', outcome: {}, error: 'there is no load \ufffd' }),
    {
      ...{ time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/), who: 'ünter', token: '' },
      ...{ operation: 'limit set', state: 'done', input, outcome: ['a', null], error: '' },
    },
  ]);
});
