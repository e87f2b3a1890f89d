import { appendFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { everyDay } from '../../../clickhouse/consistency/verify-rollups.ts';
import { unnamedChunks, verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { replay } from '../../../ingest/replay/replay.ts';
import { load as loadEvents, ndjson } from '../../support/events.ts';
import { heldAt } from '../../support/held.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
const { file, run, events, load } = loads;

const mutate = (query: string) =>
  db.store.command({
    query,
    query_params: { account: loads.account },
    clickhouse_settings: { mutations_sync: '2' },
  });

test('what is lost or too much is named with its load and file, and the command that mends it does', async () => {
  const path = await file('e.ndjson', withRejects(events(20)));
  const id = await load(path);
  expect(await verifyLedger(db.store)).toEqual({ differences: [], more: false });
  expect(await run(['verify'])).toMatchObject({
    code: 0,
    stderr: 'every chunk agrees with the ledger\nevery rollup agrees with the raw events\n',
  });

  const onDay = "day = '2026-03-03'";
  await mutate(
    `ALTER TABLE events DELETE WHERE ${onDay} AND event_id = (SELECT max(event_id) FROM events WHERE ${onDay})`,
  );
  await mutate('ALTER TABLE rejected_rows DELETE WHERE line = 1');
  await mutate('ALTER TABLE load_chunks UPDATE records = records + 1 WHERE toUInt64(loaded_at) > 0');
  const { differences } = await verifyLedger(db.store);
  expect(differences.map(({ what, day, stored, ledger }) => [what, day, stored, ledger])).toEqual([
    ['records', '', 20, 21],
    ['rejected rows', '', 3, 4],
    ['events', '2026-03-03', 3, 4],
  ]);
  expect(differences[0]).toMatchObject({ load: id, file: path, inDoubt: 0 });

  const { code, stdout, stderr } = await run(['verify', '--from', '2026-03-01', '--to', '2026-03-31']);
  expect(code).toBe(1);
  expect(stdout).toContain(`${path}\t${id}\tchunk `);
  expect(stdout).toContain('\t2026-03-03\tevents: 3 stored, 4 in the ledger\n');
  expect(stderr).toContain(`adtally unload ${id}, then load ${path} again`);
  expect((await run(['unload', id])).code).toBe(0);
  await load(path);
  expect((await run(['verify'])).code).toBe(0);
  expect(await loads.counted()).toEqual([16, '1.6']);
  await run(['unload', id]);
});

test('a day without raw events that nothing has pruned is a difference', async () => {
  const id = await load(await file('old.ndjson', ndjson(events(5, { event_time: '2026-05-05T12:00:00Z' }))));
  await db.store.command({ query: 'ALTER TABLE events DROP PARTITION 202605' });
  expect((await verifyLedger(db.store)).differences).toMatchObject([
    { load: id, day: '2026-05-05', stored: 0, ledger: 5, inDoubt: 0 },
  ]);
  expect((await run(['unload', id])).code).toBe(0);
  expect((await verifyLedger(db.store)).differences).toEqual([]);
});

test('what a running load has not finished is left out', async () => {
  const held = heldAt(db.store, /INSERT INTO load_chunks [^)]*loaded_at/);
  const loading = loadEvents(held.store, events(5));
  await held.reached;
  expect((await verifyLedger(db.store)).differences).toEqual([]);
  held.release();
  await loading;
});

test('a chunk that an interrupted load has left in doubt is mended by loading its file again', async () => {
  const path = await file('e.ndjson', ndjson(events(5)));
  const id = await load(path);
  await mutate(
    `ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE load_id = '${id}'`,
  );
  await mutate(`ALTER TABLE loads UPDATE state = 'failed' WHERE load_id = '${id}'`);
  expect((await verifyLedger(db.store)).differences).toMatchObject([
    { load: id, stored: 5, ledger: 0, inDoubt: 1 },
  ]);
  expect((await run(['verify', '--json'])).stderr).toContain(
    `complete interrupted loads: load ${path} again`,
  );
  await load(path);
  expect((await verifyLedger(db.store)).differences).toEqual([]);
});

test('events that the ledger has forgotten are told, and what verify advises ends that, also of a file that grew', async () => {
  const path = await file('forgotten.ndjson', ndjson(events(5)));
  const first = await load(path);
  await appendFile(path, ndjson(events(5)));
  const second = await load(path);
  await mutate(`ALTER TABLE load_chunks DELETE WHERE load_id IN ('${first}', '${second}')`);
  const forgotten = await run(['verify']);
  expect(forgotten).toMatchObject({ code: 0, stdout: '' });
  expect(forgotten.stderr).toContain(
    '10 events of 2026-03-01 to 2026-03-05 came in 2 chunks that the ledger does not know; their files count as never loaded',
  );
  await mutate(
    "ALTER TABLE chunk_days DELETE WHERE day = '2026-03-01' AND chunk NOT IN (SELECT chunk FROM load_chunks)",
  );
  const { code, stderr } = await run(['verify']);
  expect(code).toBe(1);
  expect(stderr).toContain('from the ledger; where no load is named, files count as never loaded');
  const [, advised = ''] = /\(adtally (ingest events FILES [^)]*)\)/.exec(stderr) ?? [];
  const words = { FILES: path, 'FIRST..LAST': '2026-03-01..2026-03-05', ACCOUNT: loads.account };
  const args = advised
    .split(' ')
    .map((word) => Object.entries(words).find(([name]) => name === word)?.[1] ?? word);
  expect((await run(args)).stderr).toContain('10 events loaded');
  expect(await run(['verify'])).toMatchObject({
    code: 0,
    stderr: expect.not.stringContaining('the ledger does not know'),
  });
  expect(await loads.counted()).toEqual([10, '1']);
});

test('events that come while verify asks for those that the ledger has forgotten do not count', async () => {
  await db.store.command({
    query: `INSERT INTO chunk_days (chunk, day, events, loaded_at)
      VALUES ('of a load', '2026-03-01', 5, now64(6) + toIntervalMinute(1))`,
  });
  expect(await unnamedChunks(db.store, everyDay)).toMatchObject({ chunks: 0, events: 0 });
  await mutate("ALTER TABLE chunk_days DELETE WHERE chunk = 'of a load'");
});

test('a replay that was interrupted is completed by the command that verify names', async () => {
  const id = await load(await file('e.ndjson', withRejects(events(5))));
  const corrected = await loads.corrected(id);
  const killed = failingAt(db.store, /INSERT INTO load_chunks [^)]*loaded_at/, 'before');
  await expect(replay(killed, id, new LocalFile(corrected), () => new Date())).rejects.toThrow('killed');
  expect((await run(['verify'])).stderr).toContain(
    `complete interrupted loads: run adtally replay ${id} FILE, with its corrected rows`,
  );
  expect((await run(['replay', id, corrected])).code).toBe(0);
  expect((await run(['verify'])).code).toBe(0);
  expect(await loads.counted()).toEqual([5, '0.5']);
});
