import { expect, test } from 'vitest';
import { event, ndjson } from '../../support/events.ts';
import { completedAfterEachStep, replacedBesideReaders } from '../../support/replace-suite.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { useUnloads } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
completedAfterEachStep(db, loads, 'days');
replacedBesideReaders(db, useService(db), loads, 'a month');

test('days with a chunk in doubt are not replaced before it is loaded or taken back', async () => {
  const { account, file, run, load, counted, sound } = loads;
  const at = (day: string) =>
    ndjson([event({ advertiser_id: account, event_time: `${day}T12:00:00Z`, spend: '1' })]);
  const doubtful = await file('doubtful.ndjson', at('2026-12-02'));
  const id = await load(doubtful);
  await db.store.command({
    query:
      'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE load_id = {id:String}',
    query_params: { id },
    clickhouse_settings: { mutations_sync: '2' },
  });
  const replace = async (day: string) =>
    run([
      'ingest',
      'events',
      '--quiet',
      '--replaces-days',
      day,
      '--of',
      account,
      await file('new.ndjson', at(day)),
    ]);
  expect((await replace('2026-12-02')).stderr).toContain(
    `it is unknown whether all of ${doubtful} arrived (load ${id})`,
  );
  expect((await replace('2026-12-03')).code).toBe(0);
  expect(await counted()).toEqual([2, '2']);
  await load(doubtful);
  expect((await replace('2026-12-02')).code).toBe(0);
  expect(await sound()).toEqual([2, '2']);
});
