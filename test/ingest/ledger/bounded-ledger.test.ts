import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { everyDay } from '../../../clickhouse/consistency/verify-rollups.ts';
import { askFigure, loadsOf, openWork } from '../../../ingest/history/figures.ts';
import { interruptedUnloads } from '../../../ingest/history/interrupted.ts';
import { unnamedChunks, verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { confirmationTime } from '../../../ingest/lists/confirmation-time.ts';
import { event, load, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { onEveryShard, useStore } from '../../support/store.ts';

const db = useStore();
const { file, ingest } = useLoader(db);
const settled = 300_000;

/** Loads of the last year, each of one chunk; every hundred thousandth failed and left its chunk in doubt. */
beforeAll(async () => {
  const each = `(SELECT number, now64(6, 'UTC') - INTERVAL 1 DAY - toIntervalSecond(100 * (${settled} - number)) AS at,
    concat(formatDateTime(at, '%Y%m%d%H%i%S', 'UTC'), '-000', leftPad(toString(number), 6, '0')) AS id, number % 100000 = 7 AS failed
    FROM numbers(${settled}))`;
  await db.store.command({
    query: `INSERT INTO loads (load_id, kind, file, started_at, turn, finished_at, state, rows, chunks, version)
      SELECT id, 'events', concat(id, '.csv'), at, at, at + 1, if(failed, 'failed', 'loaded'), 10, 1, at + 1 FROM ${each}`,
  });
  await db.store.command({
    query: `INSERT INTO load_chunks (head, chunk, load_id, bytes, records, rows, sent_at, loaded_at)
      SELECT SHA256(id), lower(hex(SHA256(concat('c', id)))), id, 100, 10, 10, at, if(failed, toDateTime64(0, 6, 'UTC'), at + 1) FROM ${each}`,
  });
  for (const table of ['loads', 'load_chunks']) await onEveryShard(db, `OPTIMIZE TABLE ${table} FINAL`);
});

/** The statements that some work makes, with the rows that each has read, and the bytes of memory that it took. */
async function statementsOf(
  work: () => Promise<unknown>,
): Promise<{ query: string; rows: number; memory: number }[]> {
  const [begin] = await select<{ now: string }>(db.store, "SELECT toString(now64(6, 'UTC')) AS now");
  await work();
  await db.store.command({ query: 'SYSTEM FLUSH LOGS query_log' });
  return select(
    db.store,
    `SELECT query, toFloat64(read_rows) AS rows, toFloat64(memory_usage) AS memory FROM system.query_log
     WHERE type = 'QueryFinish' AND is_initial_query AND current_database = currentDatabase()
       AND event_time_microseconds > toDateTime64({now:String}, 6, 'UTC')`,
    { now: begin?.now },
  );
}

const most = (statements: readonly { rows: number }[]): number =>
  Math.max(...statements.map(({ rows }) => rows));

test('what is in doubt is told without reading what is settled, however long the ledger is', async () => {
  const asked = await statementsOf(async () => {
    expect(await askFigure(db.store, openWork.chunksInDoubt)).toBe(3);
    await confirmationTime(db.store);
  });
  expect(most(asked)).toBeLessThan(settled / 10);
});

test('unloads that were interrupted are told from the loads that did not end well', async () => {
  const asked = await statementsOf(async () => expect(await interruptedUnloads(db.store)).toEqual([]));
  // A granule of `loads`, and those beside it, for each of three.
  expect(most(asked)).toBeLessThan(settled / 3);
});

test('the loads of a day are told without reading those of other days', async () => {
  const [day] = await select<{ today: string }>(db.store, "SELECT toString(toDate(now('UTC'))) AS today");
  const asked = await statementsOf(async () => {
    expect(await loadsOf(db.store, day?.today ?? '', 'UTC')).toMatchObject({ failed: 0, running: 0 });
  });
  // The end of the last load is looked for in all of them, which takes a column of 8 bytes.
  expect(most(asked)).toBeLessThan(settled * 1.2);
});

test('a load reads no more of a long ledger than of a short one', async () => {
  const asked = await statementsOf(() => load(db.store, [event({ campaign_id: 'one' })]));
  expect(asked.length).toBeGreaterThan(5);
  expect(most(asked)).toBeLessThan(settled / 10);
});

test('the ledger is verified in memory that does not grow with it', async () => {
  const id = expect.stringMatching(/^20\d{12}-/);
  const days = { from: '1971-05-01', to: '1971-05-31' };
  const insert = (chunks: string) =>
    db.store.command({
      query: `INSERT INTO chunk_days (chunk, day, events, loaded_at) SELECT chunk, '1971-05-02', 9, '2026-01-01' FROM ${chunks}`,
    });
  await insert(
    '(SELECT arrayJoin([min(chunk), max(chunk)]) AS chunk FROM load_chunks WHERE toUInt64(loaded_at) > 0)',
  );
  await insert("(SELECT arrayJoin(['0', 'a', 'f']) AS chunk)");
  const asked = await statementsOf(async () => {
    const { differences } = await verifyLedger(db.store, days);
    expect(differences.map(({ what, stored, ledger, load }) => [what, stored, ledger, load])).toEqual([
      ['events in the list of days', 9, 10, id],
      ['events in the list of days', 9, 10, id],
      ...['', '', '', id, id].map((loaded) => ['events', 0, 9, loaded]),
    ]);
    expect(await verifyLedger(db.store)).toMatchObject({ differences: { length: 1000 }, more: true });
    expect(await unnamedChunks(db.store, everyDay)).toEqual({
      ...{ chunks: 3, events: 27, first: '1971-05-02', last: '1971-05-02' },
    });
  });
  expect(Math.max(...asked.map(({ memory }) => memory))).toBeLessThan(200e6);
});

test('a folder of loaded files is answered by a few statements that write nothing, and makes no loads', async () => {
  const folder = (await file('x', '')).replace(/x$/, 'inbox');
  await mkdir(folder);
  const files = 40;
  for (let n = 0; n < files; n++)
    await writeFile(join(folder, `${n}.ndjson`), ndjson([event({ campaign_id: `inbox-${n}` })]));
  const count = 'SELECT toUInt32(uniqExact(load_id)) AS loads FROM loads';
  expect((await ingest(folder)).code).toBe(0);
  const [before] = await select<{ loads: number }>(db.store, count);
  const asked = await statementsOf(async () => {
    const { code, stdout } = await ingest(folder);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ files, rows: 0, repeated_rows: files, loads: [] });
  });
  expect(asked.filter(({ query }) => query.startsWith('INSERT'))).toEqual([]);
  expect(asked.length).toBeLessThan(files / 2);
  expect(most(asked)).toBeLessThan(settled / 2);
  expect(await select<{ loads: number }>(db.store, count)).toEqual([before]);

  await writeFile(
    join(folder, '7.ndjson'),
    ndjson([event({ campaign_id: 'inbox-7' }), event({ campaign_id: 'new' })]),
  );
  await writeFile(join(folder, 'new.ndjson'), ndjson([event({ campaign_id: 'newer' })]));
  const { stdout } = await ingest(folder);
  expect(JSON.parse(stdout)).toMatchObject({
    files: files + 1,
    loads: [expect.any(String), expect.any(String)],
  });
});
