import { expect, test } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { select } from '../../../clickhouse/client.ts';
import { rebuildRollups } from '../../../clickhouse/consistency/rebuild-rollups.ts';
import { failingFiles, lastEventsAt, longestLoad } from '../../../ingest/history/troubled-loads.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { confirmDays } from '../../../ingest/lists/confirmations.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { own, ...loader } = useLoader(db);
const failing = (now = new Date()) => failingFiles(db.store, now);
const one = () => event({ advertiser_id: own.account });
const bad = () => ndjson([event({ campaign_id: '' })]);

test('a file that fails each time is one failing file, until it is loaded, taken back or given up', async () => {
  expect(await failing()).toEqual({ files: 0, file: '', load: '', times: 0, error: '' });
  const path = await loader.file('daily.ndjson', bad());
  const other = await loader.file('other.ndjson', bad());
  const ingest = (file: string) => loader.ingest(file, '--max-rejects', '0');
  for (const times of [1, 2, 3]) {
    expect((await ingest(path)).code).toBe(1);
    expect(await failing()).toMatchObject({
      files: 1,
      file: path,
      times,
      error: expect.stringMatching(/rows are faulty/),
    });
  }
  // Another file does not hide it, nor does its own success of yesterday.
  await ingest(await loader.file('good.ndjson', ndjson([one()])));
  expect(await failing()).toMatchObject({ files: 1, file: path });

  await ingest(other);
  expect(await failing()).toMatchObject({ files: 2, file: other, times: 1 });
  const { load } = await failing();
  expect((await loader.run(['unload', load])).code).toBe(0);
  expect(await failing()).toMatchObject({ files: 1, file: path, times: 3 });

  await loader.file('daily.ndjson', ndjson([one()]));
  expect((await ingest(path)).code).toBe(0);
  expect(await failing()).toMatchObject({ files: 0 });

  await loader.file('daily.ndjson', bad());
  await ingest(path);
  expect(await failing()).toMatchObject({ files: 1, file: path, times: 1 });
  const inEightDays = new Date(Date.now() + 8 * 86_400_000);
  expect(await failing(inEightDays)).toMatchObject({ files: 0 });
});

test('a load that failed by a clock that is ahead is settled by the next one', async () => {
  const path = await loader.file('ahead.ndjson', bad());
  const before = (await failing()).files;
  const ahead = () => new Date(Date.now() + 3_600_000);
  const rejectLimit = new RejectLimit({ rows: 0 });
  await expect(
    loadEvents({ store: db.store, input: new LocalFile(path), rejectLimit, now: ahead }),
  ).rejects.toThrow(/rows are faulty/);
  expect(await failing()).toMatchObject({ files: before + 1, file: path });
  await loader.file('ahead.ndjson', ndjson([one()]));
  expect((await loader.ingest(path)).code).toBe(0);
  expect(await failing()).toMatchObject({ files: before });
});

test('a load that failed after all of it was stored is settled when the same command finds that', async () => {
  const path = await loader.file('stored.ndjson', ndjson([one()]));
  expect((await loader.ingest(path)).code).toBe(0);
  const { files } = await failing();
  const record = (state: string) =>
    db.store.command({
      query: `INSERT INTO loads (* EXCEPT version)
              SELECT * EXCEPT version REPLACE ({state:String} AS state, {pid:UInt32} AS pid)
              FROM loads FINAL WHERE file = {path:String}`,
      query_params: { path, state, pid: process.pid },
    });
  const repeated = async () => {
    expect((await loader.ingest(path)).stdout).toMatch(/"rows":0,"repeated_rows":1/);
    const loads = 'SELECT toUInt32(count()) AS loads FROM loads FINAL WHERE file = {path:String}';
    return select(db.store, loads, { path });
  };
  // As where its process is killed before it has written that it has ended.
  await record('failed');
  expect(await failing()).toMatchObject({ files: files + 1, file: path });
  expect(await repeated()).toEqual([{ loads: 2 }]);
  expect(await failing()).toMatchObject({ files });
  // One that has not ended yet needs no other.
  await record('running');
  expect(await repeated()).toEqual([{ loads: 2 }]);
  await record('loaded');
});

test('events have come last when some were newly counted, whatever was tried since', async () => {
  const path = await loader.file('first.ndjson', ndjson([one(), one()]));
  const begun = Date.now() / 1000;
  await loader.ingest(path);
  const came = await lastEventsAt(db.store);
  expect(came).toBeGreaterThan(begun - 1);

  expect((await loader.ingest(path)).stdout).toMatch(/"repeated_rows":2/);
  await loader.ingest(await loader.file('empty.ndjson', ''));
  await loader.ingest(await loader.file('rejected.ndjson', bad()));
  await loader.ingest(await loader.file('fails.ndjson', bad()), '--max-rejects', '0');
  await loader.ingest('--dry-run', await loader.file('tried.ndjson', ndjson([one()])));
  await confirmDays(db.store, own.account, '2026-03-01', '2026-03-01');
  await rebuildRollups(db.store, catalog);
  expect(await lastEventsAt(db.store)).toBe(came);

  await loader.ingest(await loader.file('second.ndjson', ndjson([one()])));
  const second = await lastEventsAt(db.store);
  expect(second).toBeGreaterThan(came);

  const days = ['--replaces-days', '2026-03-01', '--of', own.account];
  await loader.ingest(await loader.file('instead.ndjson', ndjson([one()])), ...days);
  expect(await lastEventsAt(db.store)).toBeGreaterThan(second);
});

test('a load that waits for input for ever is under way for ever longer; killed, it has failed', async () => {
  expect(await longestLoad(db.store)).toEqual({ seconds: 0, load: '', file: '' });
  const hangs = loader.start(['ingest', 'events', '--format', 'ndjson', '-'], 'stays open');
  await expect
    .poll(() => longestLoad(db.store), { timeout: 30_000 })
    .toMatchObject({
      seconds: expect.toSatisfy((seconds) => seconds >= 2),
      file: expect.stringMatching(/./),
    });
  const { load, file } = await longestLoad(db.store);
  expect((await failing()).load).not.toBe(load);
  await hangs.kill('SIGKILL');
  await expect
    .poll(() => failing(), { timeout: 40_000, interval: 500 })
    .toMatchObject({ load, file, times: 1, error: '' });
  expect(await longestLoad(db.store)).toMatchObject({ seconds: 0 });
  const ran = async () => {
    const all = JSON.parse((await loader.run(['loads', '--json'])).stdout);
    return all.find((each: { load: string }) => each.load === load);
  };
  const { state, seconds } = await ran();
  expect(state).toBe('dead');
  expect(await ran()).toMatchObject({ seconds });
  expect((await loader.run(['unload', load])).code).toBe(0);
  expect(await ran()).toMatchObject({ state: 'unloaded', seconds: expect.closeTo(seconds, 1) });
});
