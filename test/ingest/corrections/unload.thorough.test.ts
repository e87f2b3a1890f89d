import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { ndjson } from '../../support/events.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, ofTwoMonths, unloadSteps, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
const { file, run, events, load, counted, sound } = loads;
const now = () => new Date();

/** While it is half done, `status` and `verify` say how to end it. */
const halfDone = unloadSteps.slice(1, 5);

test.each(unloadSteps)('taking a load back, ended after %s, is completed by repeating it', async (step) => {
  await load(await file('good.ndjson', ndjson(events(30))));
  const wrong = await file('wrong.ndjson', ndjson(events(20)));
  const id = await load(wrong, 1_000);
  await expect(unload(failingAt(db.store, step, 'after'), id, now)).rejects.toThrow('killed');
  if (halfDone.includes(step)) {
    const ends = `take load ${id} back: its unload was interrupted, and adtally unload ${id} completes it`;
    const verified = await run(['verify']);
    expect(verified.stderr).toContain(ends);
    expect(verified.stderr).not.toMatch(/ingest events|adtally rebuild/);
    const { next } = JSON.parse((await run(['status', '--json'])).stdout);
    expect(next).toContain(ends);
    expect(next.join()).not.toContain('load the files of failed loads again');
  }
  await unload(db.store, id, now);
  expect(await counted()).toEqual([30, '3']);
  await load(wrong);
  expect(await counted()).toEqual([50, '5']);
  expect((await run(['verify'])).code).toBe(0);
});

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

test('ended after each of its steps in turn, it is completed by repeating it', async () => {
  await load(await file('good.ndjson', ndjson(events(30))));
  const wrong = await file('wrong.ndjson', ndjson(ofTwoMonths(events(20))));
  const id = await load(wrong, 3_000);
  for (const step of unloadSteps) {
    await expect(unload(failingAt(db.store, step, 'after'), id, now), `${step}`).rejects.toThrow('killed');
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

/** Its rejected rows, as events. */
async function corrected(id: string): Promise<string> {
  const { stdout } = await run(['rejects', id, '--json']);
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  for (const row of rows) row.event.quantity = 3;
  return file('corrected.ndjson', rows.map((row) => JSON.stringify(row)).join('\n'));
}

async function replayOf(id: string): Promise<string> {
  const query = "SELECT max(load_id) AS replayed FROM loads WHERE kind = 'replay' AND file = {file:String}";
  const [found] = await select<{ replayed: string }>(db.store, query, { file: `replay of ${id}` });
  return found?.replayed ?? '';
}

test('a replay that is taken back leaves its rejected rows open, to be replayed again', async () => {
  const path = await file('e.ndjson', withRejects(events(20)));
  const id = await load(path);
  expect((await run(['replay', id, await corrected(id)])).code).toBe(0);
  expect(await counted()).toEqual([20, '2']);
  const replayed = await replayOf(id);

  expect((await run(['unload', replayed])).stderr).toContain('4 events deleted, 4 rejected rows open again');
  expect(await counted()).toEqual([16, '1.6']);
  expect((await run(['replay', id, await corrected(id)])).stderr).toBe('4 rows replayed\n');
  expect(await sound()).toEqual([20, '2']);
});

test.each([
  ['before', /EXCHANGE TABLES/],
  ['after', /INSERT INTO rejected_rows/],
] as const)(
  'where taking a replay back ended %s %s, its rows do not come beside those in reports',
  async (when, step) => {
    const id = await load(await file('e.ndjson', withRejects(events(20))));
    const path = await corrected(id);
    expect((await run(['replay', id, path])).code).toBe(0);
    const replayed = await replayOf(id);
    await expect(unload(failingAt(db.store, step, when), replayed, now)).rejects.toThrow('killed');
    await run(['replay', id, path]);
    const [, spent] = await counted();
    expect(['1.6', '2']).toContain(spent);
    await unload(db.store, replayed, now);
    await run(['replay', id, path]);
    expect(await sound()).toEqual([20, '2']);
  },
);

test('its open rejected rows go with it, and come back with its file', async () => {
  const path = await file('e.ndjson', withRejects(events(20)));
  const id = await load(path);
  expect((await run(['unload', id])).stderr).toContain('4 open rejected rows deleted');
  expect((await run(['rejects', id, '--json'])).stdout).toBe('');
  const again = await load(path);
  expect((await run(['rejects', again, '--json'])).stdout.trimEnd().split('\n')).toHaveLength(4);
  expect(await sound()).toEqual([16, '1.6']);
});

test('replay --dedupe leaves out events whose event_id is present, and says how many', async () => {
  const lines = events(20);
  const id = await load(await file('e.ndjson', withRejects(lines)));
  // Three of the four come by another way.
  await load(
    await file('other.ndjson', ndjson([lines[0], lines[5], lines[10]].flatMap((line) => line ?? []))),
  );
  const { stdout } = await run(['rejects', id, '--json']);
  const path = await file('corrected.ndjson', stdout.replaceAll('"quantity":"0"', '"quantity":"1"'));
  expect(await run(['replay', id, path, '--dedupe'])).toMatchObject({
    code: 0,
    stderr: '1 row replayed, 3 left out: their event_id is already loaded\n',
  });
  expect(await sound()).toEqual([20, '2']);
  expect((await run(['rejects', id, '--json'])).stdout).toBe('');
});
