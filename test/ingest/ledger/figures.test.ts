import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { askFigure, loadsOf, openWork, type StoreSize, storeSize } from '../../../ingest/history/figures.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { confirmDays } from '../../../ingest/lists/confirmations.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';
import { event, load, ndjson, withFile } from '../../support/events.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();

async function figures() {
  const names = Object.keys(openWork) as (keyof typeof openWork)[];
  const counts = await Promise.all(names.map((name) => askFigure(db.store, openWork[name])));
  return Object.fromEntries(names.map((name, n) => [name, counts[n]]));
}

const mutate = (query: string) => db.store.command({ query, clickhouse_settings: { mutations_sync: '2' } });

test('what is open is counted, and no more once it is done', async () => {
  expect(await figures()).toEqual({ rejectedRows: 0, chunksInDoubt: 0, unconfirmedDays: 0 });
  await load(db.store, [
    event({ advertiser_id: 'a', publisher_id: 'p', spend: '1', revenue: '1', event_time: '2026-03-01' }),
    event({ advertiser_id: 'a', publisher_id: 'p', spend: '1', event_time: '2026-03-02' }),
    event({ campaign_id: '' }),
  ]);
  expect(await figures()).toEqual({ rejectedRows: 1, chunksInDoubt: 0, unconfirmedDays: 3 });

  await confirmDays(db.store, 'a', '2026-03-01', '2026-03-01');
  expect(await figures()).toMatchObject({ unconfirmedDays: 2 });
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6) WHERE true');
  expect(await figures()).toMatchObject({ chunksInDoubt: 1 });
  await mutate("ALTER TABLE loads UPDATE state = 'unloaded' WHERE true");
  expect(await figures()).toMatchObject({ chunksInDoubt: 0 });
});

test('what a file has in doubt that failed twice is given up with its last load', async () => {
  const lines = ndjson([event(), event({ campaign_id: '' })]);
  const failed = await withFile('refused.ndjson', lines, async (path) => {
    const ids: string[] = [];
    for (let times = 0; times < 2; times++) {
      const options = { store: db.store, rejectLimit: new RejectLimit({ rows: 0 }), now: () => new Date() };
      await expect(loadEvents({ ...options, input: new LocalFile(path) })).rejects.toThrow(
        'more than 0 rows',
      );
      const last = `SELECT max(load_id) AS id, argMax(error, load_id) AS error FROM loads FINAL WHERE file = {path:String}`;
      const [load] = await select<{ id: string; error: string }>(db.store, last, { path });
      expect(load?.error).toMatch(/^.*refused\.ndjson: more than 0 rows are faulty/);
      ids.push(load?.id ?? '');
    }
    return ids;
  });
  expect(await figures()).toMatchObject({ chunksInDoubt: 1 });
  await unload(db.store, failed[1] ?? '', () => new Date());
  expect(await figures()).toMatchObject({ chunksInDoubt: 0 });
});

test('the loads of a day are those that began on it where the store is', async () => {
  const insert = (id: string, state: string, started: string, ended: string) =>
    db.store.command({
      query: `INSERT INTO loads (load_id, kind, file, started_at, finished_at, state, rows)
              VALUES ('${id}', 'events', '${id}.csv', '${started}', '${ended}', '${state}', 10)`,
    });
  await insert('20260401100000-before', 'loaded', '2026-04-01 10:00:00', '2026-04-01 11:00:00');
  await insert('20260401233000-late', 'loaded', '2026-04-01 23:30:00', '2026-04-02 00:10:00');
  await insert('20260402090000-broken', 'failed', '2026-04-02 09:00:00', '2026-04-02 09:05:00');
  expect(await loadsOf(db.store, '2026-04-02', 'UTC')).toMatchObject({
    loads: 1,
    failed: 1,
  });
  expect(await loadsOf(db.store, '2026-04-02', 'Europe/Vienna')).toMatchObject({
    loads: 2,
    rows: 20,
    running: 0,
  });
});

test('the size of the store is that of its parts', async () => {
  const [size] = await select<StoreSize>(db.store, storeSize);
  expect(size?.bytes).toBeGreaterThan(1000);
  expect(size?.parts).toBeGreaterThanOrEqual(size?.most_parts ?? 0);
});
