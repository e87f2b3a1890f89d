import { expect, test } from 'vitest';
import { unload } from '../../../ingest/history/unload.ts';
import { ndjson } from '../../support/events.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, ofTwoMonths, unloadSteps, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
const { file, run, events, load, corrected, replayed, counted, sound } = loads;
const now = () => new Date();

test('verify finds an unload that lacks nothing but its end', async () => {
  const id = await load(await file('wrong.ndjson', ndjson(events(20))));
  const [end = /$/] = unloadSteps.slice(-1);
  await expect(unload(failingAt(db.store, end, 'before'), id, now)).rejects.toThrow('killed');
  const { code, stdout } = await run(['verify', '--json']);
  expect([code, JSON.parse(stdout)]).toEqual([1, [{ load: id, what: 'unload interrupted' }]]);
  await unload(db.store, id, now);
  expect((await run(['verify'])).code).toBe(0);
});

test.each(unloadSteps.slice(0, 5))('ended after %s, the same file can be loaded again', async (step) => {
  const path = await file('wrong.ndjson', ndjson(events(20)));
  const id = await load(path, 1_000);
  await expect(unload(failingAt(db.store, step, 'after'), id, now)).rejects.toThrow('killed');
  await load(path);
  expect(await sound()).toEqual([20, '2']);
});

test.each(unloadSteps.slice(0, 5))(
  'ended after %s, the same bytes are not loaded through another mapping',
  async (step) => {
    const path = await file(
      'e.csv',
      `event_time,impressions,cost,advertiser_id,campaign_id\n2026-03-01,1,7,${loads.account},C\n`,
    );
    const ingest = (...args: string[]) => run(['ingest', 'events', '--quiet', '--json', ...args, path]);
    const wrong = ['--set', 'spend=1', '--ignore-unknown'];
    const [id] = JSON.parse((await ingest(...wrong)).stdout).loads;
    await expect(unload(failingAt(db.store, step, 'after'), id, now)).rejects.toThrow('killed');
    expect((await ingest('--map', 'spend=cost')).stderr).toContain(`adtally unload ${id}`);
    await unload(db.store, id, now);
    expect((await ingest('--map', 'spend=cost')).code).toBe(0);
    expect(await sound()).toEqual([1, '7']);
  },
);

test('ended after each of its steps in turn, it says how to end it, and is completed by repeating it', async () => {
  await load(await file('good.ndjson', ndjson(events(30))));
  const wrong = await file('wrong.ndjson', ndjson(ofTwoMonths(events(20))));
  const id = await load(wrong, 3_000);
  const ends = `take load ${id} back: its unload was interrupted, and adtally unload ${id} completes it`;
  for (const step of unloadSteps) {
    await expect(unload(failingAt(db.store, step, 'after'), id, now), `${step}`).rejects.toThrow('killed');
    // Before and after that nothing is half done.
    if (!unloadSteps.slice(1, 5).includes(step)) continue;
    const { stderr } = await run(['verify']);
    expect(stderr, `${step}`).toContain(ends);
    expect(stderr, `${step}`).not.toMatch(/ingest events|adtally rebuild/);
    const { next } = JSON.parse((await run(['status', '--json'])).stdout);
    expect(next, `${step}`).toContain(ends);
    expect(next.join(), `${step}`).not.toContain('load the files of failed loads again');
  }
  expect(await unload(db.store, id, now)).toMatchObject({ before: true });
  expect(await counted()).toEqual([30, '3']);
  await load(wrong);
  expect(await sound()).toEqual([50, '5']);
});

test('what a killed load has left in doubt is taken back too', async () => {
  const path = await file('e.ndjson', ndjson(events(20)));
  const id = await load(path);
  for (const query of [
    'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE load_id = {id:String}',
    "ALTER TABLE loads UPDATE state = 'failed' WHERE load_id = {id:String}",
  ]) {
    await db.store.command({ query, query_params: { id }, clickhouse_settings: { mutations_sync: '2' } });
  }
  expect(await unload(db.store, id, now)).toMatchObject({ events: 20, chunks: 1 });
  expect(await sound()).toEqual([0, '0']);
});

test('what a load found loaded already stays with the load that loaded it', async () => {
  const lines = events(30);
  const first = await file('e.ndjson', ndjson(lines.slice(0, 20)));
  const earlier = await load(first);
  const later = await load(await file('e.ndjson', ndjson(lines)));
  const repeated = await load(first);
  expect((await run(['unload', repeated])).stderr).toBe(
    `load ${repeated}: there is nothing that only it has loaded\n`,
  );
  expect(await counted()).toEqual([30, '3']);
  await unload(db.store, later, now);
  expect(await counted()).toEqual([20, '2']);
  await unload(db.store, earlier, now);
  expect(await sound()).toEqual([0, '0']);
});

test.each([
  ['before', /EXCHANGE TABLES/],
  ['after', /INSERT INTO rejected_rows/],
] as const)(
  'where taking a replay back ended %s %s, its rows do not come beside those in reports',
  async (when, step) => {
    const id = await load(await file('e.ndjson', withRejects(events(20))));
    const path = await corrected(id);
    const replay = await replayed(id);
    await expect(unload(failingAt(db.store, step, when), replay, now)).rejects.toThrow('killed');
    await run(['replay', id, path]);
    const [, spent] = await counted();
    expect(['1.6', '2']).toContain(spent);
    await unload(db.store, replay, now);
    await run(['replay', id, path]);
    expect(await sound()).toEqual([20, '2']);
  },
);

test('replay --dedupe leaves out events whose event_id is present, and says how many', async () => {
  const lines = events(20);
  const id = await load(await file('e.ndjson', withRejects(lines)));
  // Three of the four come by another way.
  await load(
    await file('other.ndjson', ndjson([lines[0], lines[5], lines[10]].flatMap((line) => line ?? []))),
  );
  expect(await run(['replay', id, await corrected(id), '--dedupe'])).toMatchObject({
    code: 0,
    stderr: '1 row replayed, 3 left out: their event_id is already loaded\n',
  });
  expect(await sound()).toEqual([20, '2']);
  expect((await run(['rejects', id, '--json'])).stdout).toBe('');
});
