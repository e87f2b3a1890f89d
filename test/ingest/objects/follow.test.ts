import { appendFile, chmod, mkdir, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { type Store, select, storeTime } from '../../../clickhouse/client.ts';
import { defaultMapping, type ValidMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { dueLooks, noteFollowed, notFollowed } from '../../../ingest/ledger/followed-files.ts';
import { loadFiles } from '../../../ingest/load/load-files.ts';
import { dated } from '../../../ingest/places/dated.ts';
import { follow } from '../../../src/cli/ingest/follow.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useObjectStorage } from '../../support/object-storage.ts';
import { useCommands } from '../../support/process.ts';
import { onEveryShard, useStore } from '../../support/store.ts';
import { unconfirmedDays } from '../../support/unconfirmed-days.ts';

/** Places that are followed: what is new there is loaded, once, whatever its name and however late. */

const db = useStore();
const storage = useObjectStorage('events');
const { own, ...loader } = useLoader(db);
const commands = useCommands();
beforeEach(() => storage.reset());

const put = (path: string, content: string) => storage.put(`${own.account}/${path}`, content);
const lines = (from: number, count: number) =>
  ndjson(
    Array.from({ length: count }, (_, n) =>
      event({ event_id: `${own.account}-${from + n}`, advertiser_id: own.account }),
    ),
  );

/** A folder of this test, and what writes a file there that nobody writes to any more. */
async function folderOf(name: string) {
  const path = join(own.home, name);
  await mkdir(path);
  const write = async (file: string, content: string, at = new Date(Date.now() - 60_000)) => {
    await writeFile(join(path, file), content);
    await utimes(join(path, file), at, at);
  };
  return { path, write };
}

const following = (...args: string[]) => followingOf('events', ...args);

function followingOf(what: string, ...args: string[]) {
  const env = { ...loader.env(), ...storage.keys };
  const endpoint = ['--endpoint', storage.endpoint];
  const command = commands.start(['ingest', what, ...args, '--follow', '1s', ...endpoint], env);
  return {
    ...command,
    /** Resolves when so many events have come in one look. */
    loaded: (events: number) => command.said(new RegExp(`^${events} events? loaded`, 'm')),
    /** Resolves when so many events of the account are there. */
    counted: (events: number) => expect.poll(loader.counted, { timeout: 120_000 }).toBe(events),
    stopped: async () => {
      const { code, stderr } = await command.kill('SIGTERM');
      expect(code, stderr).toBe(0);
      return stderr;
    },
  };
}
const s3 = () => `s3://${storage.bucket}/${own.account}/**`;
const objectsRead = () =>
  storage.asked.filter(({ method, headers }) => method === 'GET' && headers.range).map(({ path }) => path);

test('new objects are loaded, also late ones with earlier names; what was loaded is not read again, also after a restart', async () => {
  await put('b/1.ndjson', lines(0, 3));
  const first = following(s3());
  await first.loaded(3);
  await put('a/0.ndjson', lines(10, 5));
  await first.loaded(5);
  await put('c/copy.ndjson', lines(10, 5));
  await put('b/1.ndjson', lines(0, 9));
  await first.loaded(6);
  await first.stopped();
  storage.reset();
  await put('d.ndjson', lines(20, 7));
  const second = following(s3());
  await second.loaded(7);
  await second.stopped();
  expect(new Set(objectsRead())).toEqual(new Set([`/${storage.bucket}/${own.account}/d.ndjson`]));
  expect(await loader.counted()).toBe(21);
  expect((await dueLooks(db.store)).map(({ places }) => places)).toEqual([s3()]);
  expect((await loader.run(['status'])).stdout).toMatch(
    /^followed +4 files in 24 hours, the last one .* UTC, \d+ seconds? after it was written$/m,
  );
});

test('files are known whatever characters their names have', async () => {
  const modified = new Date(0);
  const files = ['（確定）.csv', '📄.csv'].map((name) => ({ name, version: '1', modified }));
  const lookedAt = await storeTime(db.store);
  const noted = { reading: own.account, load: '', modifiedAt: 0, lookedAt };
  await Promise.all(files.map((file) => noteFollowed(db.store, { ...file, ...noted })));
  const asked = { reading: own.account, canBeUnloaded: false };
  const fresh = { name: 'new.csv', version: '1', modified };
  expect(await notFollowed(db.store, asked, [...files.toReversed(), fresh])).toEqual([fresh]);
  expect(await notFollowed(db.store, asked, files.toReversed())).toEqual([]);
});

test('of two places that are followed by their dates the past is not read, which lies between their names', async () => {
  const reading = own.account;
  // Behind all that other tests unload.
  const lookedAt = '2099-01-01 00:00:00.000000';
  const now = Date.now();
  const of = (place: number, daysAgo: number) => ({
    ...{ name: `${place}/${1000 - daysAgo}.csv`, version: `${daysAgo}` },
    modified: new Date(now - daysAgo * 86_400_000),
  });
  const note = ({ modified, ...file }: ReturnType<typeof of>) =>
    noteFollowed(db.store, { ...file, reading, load: '', modifiedAt: modified.getTime(), lookedAt });
  const days = Array.from({ length: 100 }, (_, n) => n);
  await Promise.all(days.flatMap((n) => [note(of(1, n)), note(of(2, n))]));
  let told = 0;
  const store: Store = Object.create(db.store);
  store.query = (async (params: Parameters<Store['query']>[0]) => {
    const answer = await db.store.query(params);
    const json = async () => {
      const rows = await answer.json<{ name: string }>();
      told += Array.isArray(rows) ? rows.length : 0;
      return rows;
    };
    return { json };
  }) as unknown as Store['query'];
  const found = [0, 1, 2].flatMap((n) => [of(1, n), of(2, n)]);
  expect(await notFollowed(store, { reading, canBeUnloaded: true }, found)).toEqual([]);
  expect(told).toBe(6);
});

test('an object that cannot be loaded keeps no other out, and is loaded when it is mended', async () => {
  await put('1.csv', 'no,columns\n1,2\n');
  await put('2.txt', 'no format');
  const running = following(s3());
  await running.said(/1\.csv: .*; the other files are loaded, and this one is tried again later/);
  await put('3.ndjson', lines(0, 4));
  await running.loaded(4);
  await put(
    '1.csv',
    `event_time,event_type,advertiser_id,campaign_id\n2026-03-01,impression,${own.account},c\n`,
  );
  await running.loaded(1);
  const said = await running.stopped();
  expect(said.match(/2\.txt: /g)).toHaveLength(1);
  expect(await loader.counted()).toBe(5);
});

test('a file at which ClickHouse fails keeps no other out', async () => {
  const sql = 'throwIf(1)';
  const failing: ValidMapping = {
    ...defaultMapping,
    sources: new Map([['campaign_id', { kind: 'expression', text: sql, place: 'for a test' }]]),
    expressions: new Map([['campaign_id', { sql, text: 'toString(result)', columns: [], numbers: [] }]]),
  };
  const paths = [
    await loader.file('1.ndjson', lines(0, 1)),
    await loader.file('2.ndjson', lines(1, 2)),
  ] as const;
  const failures: string[] = [];
  await loadFiles(
    paths.map((path) => new LocalFile(path)),
    {
      store: db.store,
      dedupe: true,
      now: () => new Date(),
      readingOf: (path) => mappedReading(path, path === paths[0] ? failing : defaultMapping),
      onFailed: (_, { message }) => void failures.push(message),
    },
  );
  expect(failures).toEqual([expect.stringMatching(/1\.ndjson: ClickHouse failed: .*throwIf/)]);
  expect(await loader.counted()).toBe(2);
});

test('a load that was taken back is loaded anew', async () => {
  await put('1.ndjson', lines(0, 4));
  const running = following(s3());
  await running.loaded(4);
  const [, load = ''] = (await loader.run(['loads', '--json'])).stdout.match(/"load_id":"([^"]+)"/) ?? [];
  await loader.run(['unload', load]);
  await put('2.ndjson', lines(10, 2));
  await running.counted(6);
  await running.stopped();
});

test('what is taken back while a follower loads counts once in the end', async () => {
  const running = following(s3());
  const loaded = `SELECT load_id AS id FROM loads FINAL
    WHERE position(file, {place:String}) > 0 AND state = 'loaded' ORDER BY started_at DESC`;
  for (let n = 0; n < 2; n++) {
    await put(`${n}.ndjson`, lines(n * 10, 5));
    await put(`copy of ${n}.ndjson`, lines(n * 10, 5));
    const last = () => select<{ id: string }>(db.store, loaded, { place: `/${own.account}/` });
    await expect.poll(last, { timeout: 120_000 }).not.toEqual([]);
    for (const { id } of (await last()).slice(0, 2)) await loader.run(['unload', id]);
  }
  const differences = async () => (await verifyLedger(db.store)).differences;
  await running.counted(10);
  // What was withdrawn is stored before it is settled.
  await expect.poll(differences, { timeout: 120_000 }).toEqual([]);
  await running.stopped();
  expect(await loader.counted()).toBe(10);
});

test('a store that is away for a while ends nothing; one that refuses the first look ends all', async () => {
  await put('1.ndjson', lines(0, 2));
  const running = following(s3());
  await running.loaded(2);
  storage.meet(() => ({ status: 403, code: 'AccessDenied' }));
  await running.said(/do not give access to it \(403 AccessDenied\); trying again/);
  const refused = await following(s3()).ended;
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toMatch(/^error: s3:\S+: the keys do not give access to it \(403 AccessDenied\)$/m);
  storage.reset();
  await put('2.ndjson', lines(10, 3));
  await running.loaded(3);
  await running.stopped();
});

test('files of a folder are followed when nobody writes to them any more', async () => {
  const { path: inbox, write } = await folderOf('inbox');
  const ahead = new Date(Date.now() + 600_000);
  await write('written.ndjson', lines(0, 3), ahead);
  const running = following(inbox);
  await write('done.ndjson', lines(10, 2));
  await running.loaded(2);
  await running.said(/written\.ndjson: its time of writing is in the future/);
  await appendFile(join(inbox, 'written.ndjson'), lines(3, 2));
  await utimes(join(inbox, 'written.ndjson'), 0, 0);
  await running.loaded(5);
  expect((await running.stopped()).match(/in the future/g)).toHaveLength(1);
  expect(await loader.counted()).toBe(7);
});

test('a place that fails keeps no other out, and neither does a link to nothing or to itself, nor a file whose name is not UTF-8', async () => {
  const { path: inbox, write } = await folderOf('inbox');
  await symlink(join(own.home, 'nothing'), join(inbox, '0.ndjson'));
  await symlink('loop.ndjson', join(inbox, 'loop.ndjson'));
  await writeFile(Buffer.from(`${inbox}/f\xfcr.ndjson`, 'latin1'), lines(30, 1));
  await put('1.ndjson', lines(0, 2));
  const running = following(s3(), inbox);
  await running.loaded(2);
  const noted = async () => (await dueLooks(db.store)).map(({ places }) => places);
  await expect.poll(noted, { timeout: 60_000 }).toContain(`${s3()} ${inbox}`);
  storage.meet(() => ({ status: 403, code: 'AccessDenied' }));
  await running.said(/do not give access to it \(403 AccessDenied\); trying again/);
  await write('2.ndjson', lines(10, 3));
  await running.loaded(3);
  storage.reset();
  await put('3.ndjson', lines(20, 4));
  await running.loaded(4);
  const said = await running.stopped();
  expect(said.match(/trying again/g)).toHaveLength(1);
  expect(
    said.match(/f\ufffdr\.ndjson: its name is not UTF-8; rename it; the other files are loaded$/gm),
  ).toHaveLength(1);
});

test('a file that could not be moved is moved later, also by another follower, and keeps no other out', async () => {
  const { path: inbox, write } = await folderOf('inbox');
  const { path: done } = await folderOf('done');
  // No longer name is possible, and this one is taken.
  const long = `${'a'.repeat(248)}.ndjson`;
  await write(long, lines(0, 2));
  await writeFile(join(done, long), 'another');
  const first = following(inbox, '--move-to', done);
  await first.said(/a\.ndjson: is loaded, but cannot be moved: .*tried again later/);
  await write('b.ndjson', lines(10, 3));
  await first.loaded(3);
  await first.stopped();
  expect(await readdir(inbox)).toEqual([long]);
  await rm(join(done, long));
  const second = following(inbox, '--move-to', done);
  await expect.poll(() => readdir(inbox), { timeout: 120_000 }).toEqual([]);
  await second.stopped();
  expect((await readdir(done)).sort()).toEqual([long, 'b.ndjson']);
  expect(await loader.counted()).toBe(5);
});

test('of lists that come the one written last wins, whatever its name; a faulty one keeps no other out', async () => {
  const list = (name: string) => `account_id,campaign_id,name\n${own.account},c,${name}\n`;
  const named = async () => {
    const query = 'SELECT name FROM campaigns FINAL WHERE account_id = {account:String}';
    return (await select<{ name: string }>(db.store, query, { account: own.account })).map(
      ({ name }) => name,
    );
  };
  await put('2.csv', list('Summer'));
  await put('1.csv', list('Autumn'));
  const running = followingOf('campaigns', s3());
  await running.said(/1\.csv: 1 line of campaigns loaded/);
  expect(await named()).toEqual(['Autumn']);
  await put('0.csv', 'account,name\na,b\n');
  await put('1.csv', list('Winter'));
  await running.said(
    /0\.csv: nothing was loaded[\s\S]*the other files are loaded, and this one is tried again later/,
  );
  await running.said(/1\.csv: 1 line of campaigns loaded[\s\S]*1\.csv: 1 line of campaigns loaded/);
  await put('0.csv', list('Spring'));
  await running.said(/0\.csv: 1 line of campaigns loaded/);
  // Otherwise those behind it would be loaded, and it after them.
  await onEveryShard(db, 'ALTER TABLE campaigns MODIFY SETTING parts_to_throw_insert = 1');
  await put('4.csv', list('May'));
  await running.said(/Too many parts.*; trying again/);
  await put('3.csv', list('June'));
  await onEveryShard(db, 'ALTER TABLE campaigns RESET SETTING parts_to_throw_insert');
  await running.said(/4\.csv: 1 line of campaigns loaded[\s\S]*3\.csv: 1 line of campaigns loaded/);
  await running.stopped();
  expect(await named()).toEqual(['June']);
  expect((await dueLooks(db.store)).map(({ places }) => places)).toContain(s3());
});

test('a list that was confirmed confirms nothing that is loaded later, also after an unload and a restart', async () => {
  const day = '2026-03-01';
  await put('days/1.csv', `account_id,day\n${own.account},${day}\n`);
  const money = (id: string) =>
    ndjson([
      event({
        event_id: `${own.account}-${id}`,
        advertiser_id: own.account,
        event_time: `${day} 10:00:00`,
        spend: '1',
      }),
    ]);
  await loader.ingest(await loader.file('a.ndjson', money('a')));
  const days = () => followingOf('confirmations', s3());
  const first = days();
  await first.said(/days\/1\.csv: 1 day confirmed, 1 of them had unconfirmed revenue/);
  await first.stopped();
  const { stdout } = await loader.ingest(await loader.file('b.ndjson', money('b')));
  await loader.run(['unload', JSON.parse(stdout).loads[0]]);
  await loader.ingest(await loader.file('c.ndjson', money('c')));
  const second = days();
  await put('days/2.csv', `account_id,day\n${own.account},2026-03-02\n`);
  await second.said(/days\/2\.csv: 1 day confirmed/);
  expect(await second.stopped()).not.toContain('days/1.csv');
  expect(await unconfirmedDays(db.store, own.account)).toBe(1);
});

test('a list on disk confirms nothing once more when only its mode changes, or its folder is named otherwise', async () => {
  const day = '2026-03-01';
  const { path: days, write } = await folderOf('days');
  const list = (name: string, of: string) => write(name, `account_id,day\n${own.account},${of}\n`);
  await list('1.csv', day);
  const first = followingOf('confirmations', days);
  await first.said(/1\.csv: 1 day confirmed/);
  const fields = { advertiser_id: own.account, event_time: `${day} 10:00:00`, spend: '1' };
  await loader.ingest(await loader.file('a.ndjson', ndjson([event(fields)])));
  await chmod(join(days, '1.csv'), 0o600);
  await list('2.csv', '2026-03-02');
  await first.said(/2\.csv: 1 day confirmed/);
  await first.stopped();
  const second = followingOf('confirmations', relative(process.cwd(), days));
  await list('3.csv', '2026-03-03');
  await second.said(/3\.csv: 1 day confirmed/);
  expect(await second.stopped()).not.toMatch(/[12]\.csv/);
  expect(await unconfirmedDays(db.store, own.account)).toBe(1);
});

test('what was loaded is loaded once also where ClickHouse is away when that is noted', async () => {
  const path = await loader.file('1.csv', '');
  await utimes(path, 0, 0);
  const stop = new AbortController();
  let away = false;
  const store: Store = Object.create(db.store);
  store.exec = (async (params: Parameters<Store['exec']>[0]) => {
    if (!away) return db.store.exec(params);
    away = false;
    throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  }) as Store['exec'];
  let looks = 0;
  let loads = 0;
  await follow({
    ...{ store, signal: stop.signal, places: [path], everyMs: 1, reading: own.account, canBeUnloaded: false },
    find: async () => {
      if (++looks === 3) stop.abort();
      return [new LocalFile(path)];
    },
    load: async ([file], { onLoaded }) => {
      loads++;
      away = true;
      if (file) await onLoaded(file);
    },
  });
  expect([looks, loads]).toEqual([3, 1]);
});

test('a folder that may not be entered was not looked at', async () => {
  const path = await loader.file('1.csv', '');
  const shut = new LocalFile(path);
  shut.size = () => {
    throw Object.assign(new Error(), { code: 'EACCES' });
  };
  const stop = new AbortController();
  const followed = { signal: stop.signal, places: [path], everyMs: 1, reading: own.account };
  await follow({
    ...{ store: db.store, ...followed, canBeUnloaded: false },
    find: async () => {
      setImmediate(() => stop.abort());
      return [shut];
    },
    load: async () => expect.fail('there is nothing to load'),
  });
  expect((await dueLooks(db.store)).map(({ places }) => places)).not.toContain(path);
});

test('dates of a pattern are those since a time, and a day ahead', () => {
  const now = new Date('2026-03-01T01:30:00Z');
  expect(dated('s3://b/{yyyy}/{MM}/{dd}/*.gz', 86_400_000, now)).toEqual([
    's3://b/2026/02/28/*.gz',
    's3://b/2026/03/01/*.gz',
    's3://b/2026/03/02/*.gz',
  ]);
  expect(dated('{yyyy}-{MM}/{yyyy}{MM}{dd}{HH}', 3_600_000, now)).toHaveLength(26);
  expect(() => dated('{yyyy}/{dd}', 3_600_000, now)).toThrow('{yyyy}/{dd}: has {dd} and no {MM}');
});

test('a day that has no file or folder yet fails nothing', async () => {
  const { path, write } = await folderOf('days');
  const places = ['{yyyy}-{MM}-{dd}.ndjson', '{yyyy}/{MM}/{dd}/'].map((name) => join(path, name));
  await write(`${new Date().toISOString().slice(0, 10)}.ndjson`, lines(0, 3));
  const { code, stderr } = await loader.run(['ingest', 'events', ...places, '--since', '1d']);
  expect(code, stderr).toBe(0);
  expect(await loader.counted()).toBe(3);
});
