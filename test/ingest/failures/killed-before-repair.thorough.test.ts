import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { useChunksInDoubt } from '../../support/chunks-in-doubt.ts';
import { ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { events, leaveInDoubt, counted, mutate } = useChunksInDoubt(db);
const { file, run, start } = useLoader(db);

test('a loader that is killed before it has looked at its rollups does not pass for done, and the next run is', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  const path = await file('e.ndjson', ndjson(lines));
  const args = ['ingest', 'events', '--json', '--chunk-bytes', '40000', path];
  // The rollups are not looked at as long as an earlier load runs.
  const earlier = await Load.begin(db.store, { kind: 'events', file: 'another' }, new Date());
  const loader = start(args);
  await loader.said(new RegExp(`waiting for load ${earlier.id}`));
  await loader.kill('SIGKILL');
  await earlier.finish();

  const query = `SELECT toString(state) AS state, error FROM loads AS l FINAL WHERE kind = 'events' AND file = {path:String}`;
  expect(await select(db.store, query, { path })).toEqual([
    { state: 'failed', error: expect.stringContaining('waits for other loads, to be mended') },
  ]);
  const loaded = 'SELECT count() AS chunks FROM load_chunks WHERE toUInt64(loaded_at) > 0';
  expect(await select(db.store, loaded)).toEqual([{ chunks: 0 }]);
  const { differences } = await verifyLedger(db.store);
  expect(differences.length).toBeGreaterThan(0);
  expect(differences.every(({ inDoubt }) => inDoubt === 1)).toBe(true);

  const again = await run(args);
  expect(again.code, again.stderr).toBe(0);
  expect(JSON.parse(again.stdout)).toMatchObject({ rows: 300, repeated_rows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect((await verifyLedger(db.store)).differences).toEqual([]);
});
