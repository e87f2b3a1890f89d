import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Store, select } from '../../../clickhouse/client.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { describeTarget, replacedLoads } from '../../../ingest/replace/target.ts';
import { type EventLine, event, ndjson } from '../../support/events.ts';
import { heldAt } from '../../support/held.ts';
import { outputOf } from '../../support/process.ts';
import { replaceBy, replacedBesideReaders } from '../../support/replace-suite.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
const { file, run, events, load, last, counted, sound } = loads;

const replace = (...args: string[]) => run(['ingest', 'events', '--quiet', '--json', ...args]);
async function replaced(...args: string[]): Promise<string> {
  return JSON.parse(await outputOf(replace(...args))).loads[0];
}
const kindOf = async (id: string) =>
  (
    await select<{ kind: string; state: string; file: string }>(
      db.store,
      'SELECT toString(kind) AS kind, toString(state) AS state, file FROM loads FINAL WHERE load_id = {id:String}',
      { id },
    )
  )[0];

test('a load is replaced: its events go and the new ones come, those of others stay, and nothing comes back', async () => {
  const others = await file('others.ndjson', ndjson(events(30)));
  const old = await file('old.ndjson', ndjson(events(20, { campaign_id: 'old' })));
  const corrected = await file('corrected.ndjson', ndjson(events(25, { spend: '0.2' })));
  const copy = await file('copy.ndjson', await readFile(corrected));
  await load(others);
  const id = await load(old, 1_000);

  const told = await replace('--replaces', id, '--dry-run', corrected);
  expect(told).toMatchObject({ code: 0, stderr: expect.stringContaining('events 20 → 25 (+25.0 %)') });
  expect(told.stderr).toContain('spend 2 → 5 (+150.0 %)');
  const by = await replaced('--replaces', id, corrected, copy);
  expect(await counted()).toEqual([55, '8']);
  expect(await kindOf(id)).toMatchObject({ state: 'unloaded' });
  expect(await kindOf(by)).toEqual({
    kind: 'replacement',
    state: 'loaded',
    file: `${corrected} ${copy} --replaces ${id}`,
  });
  expect((await run(['loads', '--json'])).stdout).toContain(`copy.ndjson --replaces ${id}`);

  const again = await replace('--replaces', id, corrected);
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing to do') });
  // What was replaced counts as loaded, so that a folder can be loaded again.
  for (const path of [others, old, corrected]) await load(path);
  expect(await sound()).toEqual([55, '8']);

  // The old file, and what both have in common, can take the place of the new one.
  const grown = await file('grown.ndjson', ndjson(events(25, { spend: '0.2' })) + ndjson(events(5)));
  await replaced('--replaces', by, grown);
  expect(await sound()).toEqual([60, '8.5']);
});

test('the same file, read through another mapping, takes the place of what it was loaded as', async () => {
  const csv = 'event_time,advertiser_id,campaign_id,impressions,cost\n'.concat(
    ...Array.from({ length: 10 }, () => `2026-03-01,${loads.account},c,1,0.5\n`),
  );
  const path = await file('e.csv', csv);
  const flags = ['--map=revenue=cost', '--ignore-unknown', '--set=publisher_id=p', '--set=ad_unit_id=u'];
  const wrong = await replaced(...flags, path);
  expect(await counted()).toEqual([10, '0']);
  expect((await replace('--map', 'spend=cost', path)).stderr).toContain('already loaded as load');
  await replaced('--replaces', wrong, '--map', 'spend=cost', path);
  expect(await sound()).toEqual([10, '5']);
});

test('copies of one file at several ages, in one command, count each event once: in a dry run, loaded, and in the place of others', async () => {
  const lines = events(6);
  const texts = lines.map((_, n) => ndjson(lines.slice(0, n + 1)));
  // Those that come first are slower to read.
  const copies = await Promise.all(
    texts.map((text, n) => (n < 3 ? file(`h${n}.ndjson.gz`, gzipSync(text)) : file(`h${n}.ndjson`, text))),
  );
  const dry = JSON.parse((await replace(...copies, '--dry-run')).stdout);
  expect(dry).toMatchObject({ rows: 6, repeated_rows: 15 });
  expect((await run(['ingest', 'events', ...copies])).code).toBe(0);
  expect(await sound()).toEqual([6, '0.6']);

  const old = await load(await file('old.ndjson', ndjson(events(3, { campaign_id: 'old' }))));
  const { stdout } = await replace(...copies, '--replaces', old);
  expect(JSON.parse(stdout)).toMatchObject({ rows: 6, repeated_rows: 15 });
  expect(await sound()).toEqual([6, '0.6']);

  // The ledger knows the whole as one chunk.
  const grown = events(8, { campaign_id: 'grown' });
  const whole = await file('whole.ndjson', ndjson(grown));
  const young = await file('young.ndjson', ndjson(grown.slice(0, 3)));
  await replaced(young, whole, '--replaces', await load(whole));
  expect(await sound()).toEqual([14, '1.4']);
});

test('days of an account are replaced, whichever loads brought them, on both sides of an event', async () => {
  const at = (day: string, fields: Partial<EventLine> = {}) =>
    event({ event_time: `${day}T12:00:00Z`, advertiser_id: loads.account, spend: '1', ...fields });
  const both = { advertiser_id: `${loads.account}-other`, publisher_id: loads.account };
  const lines = [
    at('2026-10-30'),
    at('2026-10-31'),
    at('2026-11-02'),
    at('2026-11-03'),
    at('2026-11-01', both),
  ];
  const first = await file('first.ndjson', ndjson(lines));
  await load(first);
  await load(
    await file('second.ndjson', ndjson([at('2026-11-01'), at('2026-11-01', { advertiser_id: 'stranger' })])),
  );
  expect(await counted()).toEqual([5, '5']);

  const days = ['--replaces-days', '2026-10-31..2026-11-02', '--of', loads.account];
  const outside = await file('outside.ndjson', ndjson([at('2026-11-01'), at('2026-11-03')]));
  expect((await replace(...days, outside)).stderr).toContain('not of');
  const corrected = await file('new.ndjson', ndjson([at('2026-11-01', { spend: '7' })]));
  expect((await replace(...days, '--dry-run', corrected)).stderr).toContain('events 4 → 1 (-75.0 %)');
  const by = await replaced(...days, corrected);
  await load(first);
  expect(await sound()).toEqual([3, '9']);
  expect((await run(['unload', by])).code).toBe(0);
  // A file whose events are there already takes their place and that of others.
  const third = await file('c.ndjson', ndjson([at('2026-11-03')]));
  await replaced('--replaces-days', '2026-11-03', '--of', loads.account, third);
  expect(await sound()).toEqual([2, '2']);
});

test('rejected rows of the old load go, and those of the new one are kept; they come back with the old file', async () => {
  const old = await file('old.ndjson', withRejects(events(20)));
  const first = await replace(old);
  const [id] = JSON.parse(first.stdout).loads;
  const path = await file('new.ndjson', withRejects(events(10)));
  expect((await replace('--replaces', id, '--max-rejects', '10%', path)).code).toBe(1);
  expect(await counted()).toEqual([16, '1.6']);
  const second = await replace('--replaces', id, path);
  expect(second.code).toBe(4);
  const [by] = JSON.parse(second.stdout).loads;
  expect(await sound()).toEqual([8, '0.8']);
  const open = async (load: string) => (await run(['rejects', load, '--json'])).stdout.trimEnd().split('\n');
  expect((await open(by)).filter(Boolean)).toHaveLength(2);
  expect((await open(id)).filter(Boolean)).toHaveLength(0);

  const back = await replace('--replaces', by, old);
  expect(back.code).toBe(4);
  expect(await sound()).toEqual([16, '1.6']);
  expect((await open(JSON.parse(back.stdout).loads[0])).filter(Boolean)).toHaveLength(4);

  const days = ['--replaces-days', '2026-03-01..2026-03-05', '--of', loads.account];
  await replaced(...days, await file('days.ndjson', ndjson(events(5))));
  expect(await replace(old)).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('4 rows rejected before wait for a correction'),
  });
});

test('a rejected row that other flags make an event of waits for no correction any more; the others do, with corrections that were taken back', async () => {
  const rows = events(10).map((line, n) => ({
    ...line,
    ...(n < 2 && { spend: '0.1234567' }),
    quantity: n % 9,
  }));
  const path = await file('money.ndjson', ndjson(rows));
  const [id] = JSON.parse((await replace(path)).stdout).loads;
  const rejected = (load: string) => run(['rejects', load, '--json']);
  const corrected = (await rejected(id)).stdout.replaceAll('"quantity":"0"', '"quantity":"3"');
  await run(['replay', id, await file('corrected.ndjson', corrected)]);
  expect(await counted()).toEqual([8, '0.8']);
  expect((await run(['unload', await last('replay')])).stderr).toContain('1 rejected row');

  const again = await replace('--round-money', '--replaces', id, path);
  expect(again.code).toBe(4);
  expect(await sound()).toEqual([8, '0.823457']);
  const [by] = JSON.parse(again.stdout).loads;
  const { stdout } = await rejected(by);
  const open = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(open.map((row) => [row.load, row.line, row.event.quantity])).toEqual([
    [by, 1, '0'],
    [by, 10, '3'],
  ]);
  expect(open[0].faults).toHaveLength(1);

  // Nor is it lost when the file comes once more, or what was dismissed open again.
  const third = await replace('--round-money', '--ignore-unknown', '--replaces', by, path);
  expect(third.code).toBe(4);
  const [newest] = JSON.parse(third.stdout).loads;
  const kept = (await rejected(newest)).stdout;
  expect(kept).toBe(stdout.replaceAll(by, newest));
  expect(kept).toContain(newest);
  // A correction that was taken back needs no change.
  await run(['replay', newest, await file('again.ndjson', kept)]);
  expect(await sound()).toEqual([9, '0.923457']);
  await run(['rejects', newest, '--dismiss']);
  await run(['unload', await last('replay')]);
  await run(['rejects', newest, '--dismiss']);
  const fourth = await replace('--round-money', '--replaces', newest, path);
  expect(fourth).toMatchObject({ code: 0, stderr: expect.not.stringContaining('list them with') });
  expect(JSON.parse(fourth.stdout).open_rejects).toBe(0);
  expect(await sound()).toEqual([8, '0.823457']);
});

test('rejected rows of what another load has ended stay open when the one that was killed is replaced', async () => {
  const path = await file('killed.ndjson', withRejects(events(20)));
  const input = { input: new LocalFile(path), chunkBytes: 2_000, now: () => new Date() };
  const store = failingAt(db.store, /INSERT INTO load_chunks .*\sloaded_at/s, 'before');
  await expect(loadEvents({ store, ...input })).rejects.toThrow('killed');
  const query = "SELECT load_id AS id FROM loads FINAL WHERE kind = 'events' AND state = 'failed'";
  const [{ id } = { id: '' }] = await select<{ id: string }>(db.store, query);
  const { loadId: other = '' } = await loadEvents({ store: db.store, ...input });
  await replace('--replaces', id, await file('new.ndjson', ndjson(events(5))));
  expect(await sound()).toEqual([21, '2.1']);
  expect((await run(['rejects', other, '--json'])).stdout.trimEnd().split('\n')).toHaveLength(4);
});

test('what cannot be replaced is refused, and nothing is changed', async () => {
  const old = await file('old.ndjson', ndjson(events(20)));
  // On a machine whose clock is ahead: its id is larger than that of the replacement.
  const ahead = () => new Date(Date.now() + 600_000);
  const { loadId: id = '' } = await loadEvents({ store: db.store, input: new LocalFile(old), now: ahead });
  const path = await file('new.ndjson', ndjson(events(25)));
  const refused = async (...args: string[]) => {
    const { code, stderr } = await replace(...args);
    expect([1, 2], stderr).toContain(code);
    return stderr;
  };
  expect(await refused('--replaces', 'nowhere', path)).toContain('there is no load nowhere');
  expect(await refused('--replaces', id, '--max-change', '20%', path)).toContain(
    'events would go from 20 to 25',
  );
  expect(await refused('--replaces', id, '--dedupe', path)).toContain('--dedupe does not go with');
  expect(await refused('--replaces', id, '--of', 'a', path)).toContain(
    '--replaces-days and --of go together',
  );
  expect(await refused('--max-change', '5%', path)).toContain('goes with --replaces');
  expect(await refused('--replaces-days', '2026-03-02..2026-03-01', '--of', 'a', path)).toContain(
    'the earlier first',
  );
  await run(['rebuild']);
  expect(await refused('--replaces', await last('rebuild'), path)).toContain('is no load of files');
  const empty = await file('empty.ndjson', '');
  expect(await refused('--replaces', id, empty)).toContain('have no events');
  expect(await counted()).toEqual([20, '2']);
  const by = await replaced('--replaces', id, '--max-change', '25%', path);
  expect(await counted()).toEqual([25, '2.5']);
  const third = await file('third.ndjson', ndjson(events(5)));
  expect(await refused('--replaces', id, third)).toContain(`was replaced before, by load ${by}`);
  expect(await sound()).toEqual([25, '2.5']);
});

test('a load that still runs is replaced when it has ended', async () => {
  const held = heldAt(db.store, /INSERT INTO load_chunks [^)]*loaded_at/);
  const old = new LocalFile(await file('old.ndjson', ndjson(events(20))));
  const loading = loadEvents({ store: held.store, input: old, now: () => new Date() });
  await held.reached;
  const query = "SELECT load_id AS id FROM loads FINAL WHERE state = 'running'";
  const [running] = await select<{ id: string }>(db.store, query);
  const id = running?.id ?? '';
  const replacing = replaceBy(db.store, { load: id }, await file('new.ndjson', ndjson(events(5))));
  await expect.poll(async () => (await select(db.store, query)).length, { timeout: 10_000 }).toBe(2);
  held.release();
  await loading;
  await replacing;
  expect(await sound()).toEqual([5, '0.5']);
});

test('a replacement in its turn counts another one of the same days as unfinished where it has claimed something, and not where it waits', async () => {
  const target = { days: { from: '2026-03-01', to: '2026-03-31' }, account: loads.account };
  const description = { kind: 'replacement', file: `new.ndjson ${describeTarget(target)}` } as const;
  const first = await Load.begin(db.store, description, new Date());
  let waiting = Promise.resolve(first);
  const waitsFor = await new Promise((onWait) => {
    waiting = Load.begin(db.store, description, new Date(), { onWait });
  });
  expect(waitsFor).toBe(first.id);
  expect(await replacedLoads(db.store, target, first.id)).toEqual([]);
  const values = [{ head: 'of a replacement'.padEnd(32), chunk: 'claimed', load_id: first.id }];
  await db.store.insert({ table: 'load_chunks', values, format: 'JSONEachRow' });
  await first.fail('killed');
  const second = await waiting;
  expect(await replacedLoads(db.store, target, second.id)).toEqual([first.id]);
  await second.fail('killed');
  await db.store.command({
    query: "ALTER TABLE load_chunks DELETE WHERE chunk = 'claimed'",
    clickhouse_settings: { mutations_sync: '2' },
  });
});

test('a replacement that loses its connection says that the same command completes it', async () => {
  const target = { load: await load(await file('old.ndjson', ndjson(events(10)))) };
  const path = await file('new.ndjson', ndjson(events(5)));
  const store: Store = Object.create(db.store);
  let isLost = false;
  const requireConnected = () => {
    if (isLost) throw new Error('connection lost');
  };
  store.command = async (params) => {
    isLost ||= /INSERT INTO withdrawn_chunks/.test(params.query);
    requireConnected();
    return db.store.command(params);
  };
  store.query = async (params: Parameters<Store['query']>[0]) => {
    requireConnected();
    return db.store.query(params);
  };
  await expect(replaceBy(store, target, path)).rejects.toThrow(
    'connection lost. The same command completes the replacement',
  );
  await replaceBy(db.store, target, path);
  expect(await sound()).toEqual([5, '0.5']);
  // What the first one held back would stay for a day.
  await db.store.command({ query: 'TRUNCATE TABLE incoming_staging' });
});

test('a replacement that was silent until its events were there leaves its chunks to those who may have taken them over', async () => {
  const target = { load: await load(await file('old.ndjson', ndjson(events(10)))) };
  const path = await file('new.ndjson', ndjson(events(5)));
  const store: Store = Object.create(db.store);
  const lapsed = vi.spyOn(Load.prototype, 'heartbeatLapsedSince');
  onTestFinished(() => lapsed.mockRestore());
  store.command = async (params) => {
    if (/INSERT INTO chunk_days/.test(params.query)) lapsed.mockReturnValue(true);
    return db.store.command(params);
  };
  await expect(replaceBy(store, target, path)).rejects.toThrow('could not record a heartbeat');
  lapsed.mockRestore();
  await replaceBy(db.store, target, path);
  expect(await sound()).toEqual([5, '0.5']);
});

test('the rewrite of a month that only the old load has is ended by the same command, too', async () => {
  const at = (event_time: string) => events(5, { event_time });
  const old = [...at('2026-06-01T12:00:00Z'), ...at('2026-07-01T12:00:00Z')];
  const target = { load: await load(await file('old.ndjson', ndjson(old))) };
  const path = await file('new.ndjson', ndjson(at('2026-07-02T12:00:00Z')));
  // The list of days has been brought in line with the events.
  const killed = replaceBy(failingAt(db.store, /INSERT INTO loads \(\* EXCEPT/, 'before'), target, path);
  await expect(killed).rejects.toThrow('killed');
  const open =
    'SELECT month FROM rewrites AS r FINAL WHERE toUInt64(r.ended_at) = 0 AND month >= 202606 ORDER BY month';
  expect(await select(db.store, open)).toEqual([{ month: 202606 }, { month: 202607 }]);
  await replaceBy(db.store, target, path);
  expect(await select(db.store, open)).toEqual([]);
  expect(await sound()).toEqual([5, '0.5']);
});

replacedBesideReaders(db, useService(db), loads, 'two months');
