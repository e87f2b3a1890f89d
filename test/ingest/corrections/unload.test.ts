import { expect, test } from 'vitest';
import { type Store, select } from '../../../clickhouse/client.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { mendOf } from '../../../ingest/ledger/load-records.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { ndjson } from '../../support/events.ts';
import { heldAt } from '../../support/held.ts';
import { replaceBy } from '../../support/replace-suite.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, ofTwoMonths, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
const { file, run, events, load, last, replayed, counted, sound } = loads;

const stateOf = async (id: string) =>
  select(db.store, 'SELECT toString(state) AS state FROM loads FINAL WHERE load_id = {id:String}', { id });

test('a load is taken back exactly, also where others share its days, and its file can be loaded again', async () => {
  const good = await file('good.ndjson', ndjson(ofTwoMonths(events(30))));
  const wrong = await file('wrong.ndjson', ndjson(ofTwoMonths(events(20, { campaign_id: 'wrong' }))));
  await load(good);
  const id = await load(wrong);
  expect(await counted()).toEqual([50, '5']);

  expect(await run(['unload', id])).toMatchObject({
    code: 0,
    stderr: `load ${id} is taken back: 20 events deleted, rollups of 2 months rebuilt\n`,
  });
  expect(await counted()).toEqual([30, '3']);
  expect(await stateOf(id)).toEqual([{ state: 'unloaded' }]);
  expect(await run(['unload', id])).toMatchObject({
    code: 0,
    stderr: `load ${id} has been taken back or replaced before\n`,
  });

  await load(wrong);
  expect(await counted()).toEqual([50, '5']);
  await load(wrong);
  expect(await sound()).toEqual([50, '5']);
});

test('a file that had grown and was taken back adds what is new to its old copy, which was loaded since', async () => {
  const lines = events(30);
  const old = await file('old.ndjson', ndjson(lines.slice(0, 20)));
  const grown = await file('grown.ndjson', ndjson(lines));
  expect((await run(['unload', await load(grown)])).code).toBe(0);
  await load(old);
  await load(grown);
  await load(old);
  expect(await sound()).toEqual([30, '3']);
});

test.each([
  ['has loaded it, too, and sent it before', { sentAt: 'addSeconds(max(c.sent_at), -60)', isLoaded: true }],
  ['has claimed it since, and found it loaded', { sentAt: "now64(6, 'UTC')", isLoaded: false }],
])('a chunk goes with the load that has loaded it, where another one %s', async (_, { sentAt, isLoaded }) => {
  const path = await file('claimed.ndjson', ndjson(events(20)));
  const id = await load(path);
  const other = await Load.begin(db.store, { kind: 'events', file: path }, new Date());
  await other.fail('silent for long');
  const claims = [`${sentAt}, 0`, ...(isLoaded ? ['0, max(c.loaded_at)'] : [])];
  for (const times of claims) {
    await db.store.command({
      query: `INSERT INTO load_chunks (head, chunk, load_id, rows, records, sent_at, loaded_at)
        SELECT head, chunk, {other:String}, ${isLoaded ? 'max(c.rows), max(c.records)' : '0, 0'}, ${times}
        FROM load_chunks AS c WHERE load_id = {id:String} GROUP BY head, chunk`,
      query_params: { id, other: other.id },
    });
  }
  expect((await run(['unload', other.id, '--dry-run'])).stderr).toContain(
    'there is nothing that only it has loaded',
  );
  expect((await run(['unload', id])).stderr).toContain('20 events deleted');
  expect(await counted()).toEqual([0, '0']);
  await load(path);
  expect(await sound()).toEqual([20, '2']);
});

test.each([
  ['sent by themselves', {}],
  ['counted first', { dedupe: true }],
])('chunks of an unloaded file, %s, are sent as new ones, beside other loads', async (_, options) => {
  const query = `SELECT load_id FROM loads FINAL WHERE kind = 'rebuild' AND file LIKE {mend:String}
    ORDER BY load_id`;
  const mends = () => select(db.store, query, { mend: mendOf('%') });
  const before = await mends();
  const path = await file('again.ndjson', ndjson(events(20)));
  const again = (store: Store) =>
    loadEvents({ store, input: new LocalFile(path), chunkBytes: 2_000, now: () => new Date(), ...options });
  for (const round of [1, 2]) {
    const { loadId = '', rows } = await again(db.store);
    expect(rows, `round ${round}`).toBe(20);
    expect(await sound()).toEqual([20, '2']);
    expect((await run(['unload', loadId])).code).toBe(0);
    expect(await counted()).toEqual([0, '0']);
  }
  // Killed behind its second insert: what it has sent is known under its own token alone.
  await expect(again(failingAfter(db.store, 2))).rejects.toThrow('killed');
  expect(await mends()).toEqual(before);
  expect(await again(db.store)).toMatchObject({ duplicateRows: 0 });
  expect(await sound()).toEqual([20, '2']);
});

/** The store, on which an insert of events fails after it was done. */
function failingAfter(store: Store, inserts: number): Store {
  let left = inserts;
  const failing: Store = Object.create(store);
  const ending =
    <Params extends { readonly query: string }, Result>(run: (params: Params) => Promise<Result>) =>
    async (params: Params) => {
      const result = await run(params);
      if (/INSERT INTO incoming /.test(params.query) && --left === 0) throw new Error('killed');
      return result;
    };
  failing.command = ending(store.command.bind(store));
  failing.exec = ending(store.exec.bind(store)) as Store['exec'];
  return failing;
}

test('--dry-run says what would be taken back, of a load and of a replay, and changes nothing', async () => {
  const path = await file('wrong.ndjson', withRejects(ofTwoMonths(events(20))));
  const first = await run(['ingest', 'events', '--json', path]);
  const [id] = JSON.parse(first.stdout).loads;
  const before = await counted();
  expect(before).toEqual([16, '1.6']);
  for (const _ of ['once', 'again']) {
    expect(await run(['unload', id, '--dry-run'])).toMatchObject({
      code: 0,
      stderr: `load ${id} would be taken back: 16 events deleted, 4 open rejected rows deleted, rollups of 2 months rebuilt
nothing was changed; 1 chunk with events of 2026-03, 2026-04 would be forgotten\n`,
    });
  }
  expect(await counted()).toEqual(before);
  expect(await stateOf(id)).toEqual([{ state: 'loaded' }]);

  const replay = await replayed(id);
  const { stderr } = await run(['unload', replay, '--dry-run']);
  expect(stderr).toContain('4 events deleted, 4 rejected rows open again, rollups of 2 months rebuilt');
  expect((await run(['unload', replay])).stderr).toContain(
    '4 events deleted, 4 rejected rows open again, rollups of 2 months rebuilt',
  );
  expect(await sound()).toEqual(before);
  expect((await run(['unload', id])).stderr).toContain('16 events deleted, 4 open rejected rows deleted');
  expect((await run(['rejects', id, '--json'])).stdout).toBe('');
  expect((await run(['unload', id, '--dry-run'])).stderr).toBe(
    `load ${id} has been taken back or replaced before\n`,
  );
  expect((await run(['unload', 'nowhere', '--dry-run'])).code).toBe(1);
});

test('a load whose rejected rows were replayed is taken back or replaced after its replay, so that none counts twice', async () => {
  const path = await file(
    'money.ndjson',
    ndjson(events(20).map((line) => ({ ...line, spend: '0.1000000001' }))),
  );
  const id = await load(path);
  const corrected = (await run(['rejects', id, '--json'])).stdout.replaceAll('0.1000000001', '0.1');
  expect((await run(['replay', id, await file('corrected.ndjson', corrected)])).code).toBe(0);
  const replay = await last('replay');
  expect(await counted()).toEqual([20, '2']);

  const whole = await file('whole.ndjson', ndjson(events(20)));
  const ofDays = ['--replaces-days', '2026-03-01..2026-04-30', '--of', loads.account];
  for (const args of [
    ['unload', id],
    ['unload', id, '--dry-run'],
    ['ingest', 'events', whole, '--replaces', id],
    ['ingest', 'events', path, '--round-money', ...ofDays],
  ]) {
    const { code, stderr } = await run(args);
    expect(code, stderr).toBe(1);
    expect(stderr).toContain(
      `20 rejected rows were replayed by load ${replay}. Take that load back first (adtally unload ${replay})`,
    );
  }
  expect(await counted()).toEqual([20, '2']);

  expect((await run(['unload', replay])).stderr).toContain('20 rejected rows open again');
  expect((await run(['unload', id])).stderr).toContain('20 open rejected rows deleted');
  expect((await run(['ingest', 'events', path, '--round-money'])).code).toBe(0);
  expect(await sound()).toEqual([20, '2']);
});

test('an unload that was refused was not interrupted: what is to be done with its load is to load the file again', async () => {
  const path = await file('killed.ndjson', withRejects(events(40)));
  const killed = { input: new LocalFile(path), chunkBytes: 2_000, now: () => new Date() };
  await expect(loadEvents({ store: failingAfter(db.store, 2), ...killed })).rejects.toThrow('killed');
  const id = await last('events');
  await replayed(id);
  expect((await run(['unload', id])).stderr).toContain('Take that load back first');
  const told = [(await run(['verify'])).stderr, (await run(['status', '--next'])).stdout];
  for (const text of told) expect(text).not.toContain('unload was interrupted');
  expect(told[1]).toContain(`load ${path} again, once its cause is mended: it failed once`);
  expect((await run(['ingest', 'events', path])).code).toBe(4);
  expect((await run(['verify'])).code).toBe(0);
});

test.each(['taken back', 'replaced'])(
  'while a load is %s, status and verify do not say that its file is to be loaded again',
  async (how) => {
    const path = await file('wrong.ndjson', ndjson(events(20)));
    const id = await load(path);
    const held = heldAt(db.store, /EXCHANGE TABLES .* AND (campaigns|ad_units)/);
    const changing =
      how === 'replaced'
        ? replaceBy(held.store, { load: id }, await file('right.ndjson', ndjson(events(10))))
        : unload(held.store, id, () => new Date());
    await held.reached;
    const { code, stderr } = await run(['verify']);
    const { stdout } = await run(['status', '--next']);
    const preview = await run(['unload', id, '--dry-run']);
    held.release();
    await changing;
    expect(preview.stderr).toMatch(/would be taken back|has begun to take its place/);
    expect(code).toBe(1);
    expect(stderr).toContain('ran meanwhile: run adtally verify again when it has ended');
    expect(stderr).not.toMatch(/adtally (ingest|unload|rebuild) /);
    expect(stdout).not.toMatch(/wrong|load the files of failed loads again/);
    expect((await run(['verify'])).code).toBe(0);
  },
);

test('right after a replacement was killed, verify does not say to take back what it replaces', async () => {
  const id = await load(await file('wrong.ndjson', ndjson(events(20))));
  const right = await file('right.ndjson', ndjson(events(10)));
  const failing = failingAt(db.store, /EXCHANGE TABLES .* AND events$/, 'after');
  await expect(replaceBy(failing, { load: id }, right)).rejects.toThrow('killed');
  await db.store.command({
    query: `INSERT INTO loads (* EXCEPT version)
      SELECT * EXCEPT version REPLACE ('running' AS state, 5000000 AS pid, toDateTime64(0, 3) AS finished_at)
      FROM loads FINAL WHERE load_id = {id:String}`,
    query_params: { id: await last('replacement') },
  });
  const { code, stderr } = await run(['verify']);
  expect(code).toBe(1);
  expect(stderr).not.toMatch(/adtally (unload|rebuild) /);
  // Its file, loaded again, would stay beside the events that have come already.
  expect((await run(['unload', id])).stderr).toContain('has begun to take its place');
  await replaceBy(db.store, { load: id }, right);
  expect(await sound()).toEqual([10, '1']);
});

test.each([
  ['before its events came', /INSERT INTO load_chunks/],
  ['while they came', /INSERT INTO withdrawn_chunks/],
])('a load whose replacement was interrupted %s can still be got rid of', async (_, step) => {
  const path = await file('wrong.ndjson', ndjson(events(20)));
  const id = await load(path);
  const right = await file('right.ndjson', ndjson(events(10)));
  const failing = failingAt(db.store, step, 'after');
  await expect(replaceBy(failing, { load: id }, right)).rejects.toThrow('killed');
  expect((await run(['unload', id])).stderr).toContain(
    `or those of load ${id}, with --replaces ${id} instead`,
  );
  expect((await run(['ingest', 'events', path, '--replaces', id])).code).toBe(0);
  expect((await run(['unload', await last('replacement')])).code).toBe(0);
  expect(await sound()).toEqual([0, '0']);
});

test.each([
  ['nowhere', /there is no load nowhere/],
  ['a rebuild', /is no load of events/],
])('%s cannot be taken back', async (what, reason) => {
  let id = what;
  if (what === 'a rebuild') {
    await run(['rebuild']);
    id = await last('rebuild');
  }
  const { code, stderr } = await run(['unload', id]);
  expect(code).toBe(1);
  expect(stderr).toMatch(reason);
});

test('dismissed rows are not listed or waited for any more, also not after the file is loaded again', async () => {
  const path = await file('e.ndjson', withRejects(events(20)));
  const first = await run(['ingest', 'events', '--json', path]);
  expect(first.code).toBe(4);
  const [id] = JSON.parse(first.stdout).loads;
  expect((await run(['rejects', '--dismiss'])).code).toBe(2);
  for (const format of ['--csv', '--json'])
    expect((await run(['rejects', id, '--dismiss', format])).code).toBe(2);
  expect(await run(['rejects', id, '--dismiss'])).toMatchObject({
    code: 0,
    stderr: '4 rejected rows dismissed\n',
  });
  expect((await run(['rejects', id, '--json'])).stdout).toBe('');
  expect((await run(['rejects', id, '--dismiss'])).stderr).toBe('0 rejected rows dismissed\n');
  expect((await run(['ingest', 'events', path])).code).toBe(0);
});

test.each([
  ['sent at once', []],
  ['counted first', ['--max-rejects', '1']],
])(
  'rows that were dismissed count as events when their file comes again with flags that admit them, %s',
  async (_, flags) => {
    const lines = events(20).map((line, n) => (n % 5 ? line : { ...line, spend: '0.0000001' }));
    const path = await file('fine.ndjson', ndjson(lines));
    const first = await run(['ingest', 'events', '--json', path]);
    const [id] = JSON.parse(first.stdout).loads;
    await run(['rejects', id, '--dismiss']);
    await run(['unload', id]);
    const again = await run(['ingest', 'events', '--round-money', ...flags, path]);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('20 events loaded') });
    expect(await sound()).toEqual([20, '1.6']);
  },
);
