import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { faultsOfRows } from '../../../ingest/replay/judge-corrections.ts';
import { replayedAs, useRejectedLoads } from '../../support/rejected-loads.ts';
import { useStore } from '../../support/store.ts';
import { failingAt } from '../../support/unloads.ts';

const db = useStore();
const loads = useRejectedLoads(db);
const { file, run, loadWithRejects, corrected, totals } = loads;

replayedAs(loads, 'csv');

test('corrections are judged though what was held back for that cannot be let go of', async () => {
  const store = failingAt(db.store, /ALTER TABLE incoming_staging/, 'before');
  const faults = await faultsOfRows(store, [{ event_id: 'a', event_type: 'click' }], false);
  expect([...faults.keys()]).toEqual([0]);
});

test('a correction is judged as the file was: exit code 4, and it stays rejected', async () => {
  const { load } = await loadWithRejects(50);
  const path = await corrected(load, 'ndjson', () => 3);
  const lines = (await readFile(path, 'utf8')).split('\n');
  const early = lines[0]?.replace(/"event_time":"[^"]*"/, '"event_time":"1971-01-01T00:00:00+05:00"') ?? '';
  const changed = await file('early.ndjson', [early, ...lines.slice(1)].join('\n'));
  const { code, stderr } = await run('replay', load, changed);
  expect(code, stderr).toBe(4);
  expect(stderr).toMatch(/event_time must be between 1971 and 2149, not "1971-01-01T00:00:00\+05:00"/);
  expect(stderr).toContain('9 rows replayed, 1 still faulty');
  expect(await totals()).toMatchObject({ events: 49 });
});

test.each([
  ['events.csv', 'event_id,quantity\na,1\n'],
  ['events.ndjson', '{"event_id":"a","quantity":1}\n'],
  ['broken.csv', 'chunk,line\n"never closed'],
  ['broken.ndjson', '{"chunk":'],
  ['list.ndjson', '[]'],
])('%s, which is no export, is refused', async (name, content) => {
  const { load } = await loadWithRejects(5);
  const path = await file(name, content);
  const { code, stderr } = await run('replay', load, path);
  expect(code).toBe(1);
  expect(stderr).toContain(`${path}: is not a corrected export`);
  expect(await totals()).toMatchObject({ events: 4 });
});

test('a load that does not exist is named', async () => {
  const { code, stderr } = await run('replay', 'nowhere', await file('e.csv', 'chunk,line\n'));
  expect(code).toBe(1);
  expect(stderr).toMatch(/there is no load nowhere/);
});

test('of many rows that are still faulty the first are shown, and how many there are', async () => {
  const { load } = await loadWithRejects(100);
  const { code, stderr } = await run('replay', load, await corrected(load, 'ndjson', () => 0));
  expect(code).toBe(4);
  expect(stderr.match(/still faulty: /g)).toHaveLength(10);
  expect(stderr).toContain(`… and 10 more that are still faulty; adtally rejects ${load} lists them`);
});
