import { expect, test } from 'vitest';
import { useDedupedLoads } from '../../support/deduped-loads.ts';
import { useStore } from '../../support/store.ts';

const { lines, file, start, ingest, counted } = useDedupedLoads(useStore());

test('an event_id in two files of the same day is counted once, in events and rollups', async () => {
  const first = await file('first.ndjson', lines(0, 100));
  const second = await file('second.ndjson', lines(50, 150, { device: 'mobile' }));
  expect(await ingest('--dedupe', first)).toMatchObject({ rows: 100, duplicate_rows: 0 });
  expect(await ingest('--dedupe', second)).toMatchObject({ rows: 50, duplicate_rows: 50 });
  expect(await counted()).toEqual({ events: 150, ids: 150 });
  expect(await ingest('--dedupe', first, second)).toMatchObject({ rows: 0, duplicate_rows: 0 });
  expect(await counted()).toEqual({ events: 150, ids: 150 });
});

test('the same event_id on another day is another event', async () => {
  await ingest('--dedupe', await file('first.ndjson', lines(0, 10)));
  // One of the first day is among them: what counts is the day of the event, not those of its chunk.
  const others = [...lines(0, 10, { event_time: '2026-03-02T12:00:00Z' }), ...lines(10, 11)];
  const next = await file('next.ndjson', others);
  expect(await ingest('--dedupe', next)).toMatchObject({ rows: 11, duplicate_rows: 0 });
  expect(await counted()).toEqual({ events: 21, ids: 11 });
});

test.each(['1000000', '3000'])(
  'an event_id that repeats within a file is counted once, in chunks of %s bytes',
  async (bytes) => {
    const path = await file('e.ndjson', [...lines(0, 60), ...lines(30, 90, { device: 'tablet' })]);
    expect(await ingest('--dedupe', '--chunk-bytes', bytes, path)).toMatchObject({
      rows: 90,
      duplicate_rows: 30,
    });
    expect(await counted()).toEqual({ events: 90, ids: 90 });
  },
);

test('without --dedupe repeated ids are counted, and the history tells how many there are', async () => {
  await ingest(await file('first.ndjson', lines(0, 100)));
  // Without an id, and with the id of an event of another day: these repeat nothing.
  const others = [...lines(0, 5, { event_id: '' }), ...lines(0, 10, { event_time: '2026-03-02T12:00:00Z' })];
  const second = await file('second.ndjson', [...lines(70, 150, { device: 'mobile' }), ...others]);
  const { loads, rows } = await ingest(second);
  expect(rows).toBe(95);
  expect(await counted()).toEqual({ events: 195, ids: 151 });
  const { stdout } = await start('loads', 'show', ...loads, '--json').ended;
  expect(JSON.parse(stdout)).toMatchObject([{ repeated_ids: 30, rows: 95 }]);
});
