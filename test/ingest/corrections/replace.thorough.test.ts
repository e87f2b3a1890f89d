import { expect, test } from 'vitest';
import { event, ndjson } from '../../support/events.ts';
import { completedAfterEachStep, replaceBy, replacedBesideReaders } from '../../support/replace-suite.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
completedAfterEachStep(db, loads, 'a load');
completedAfterEachStep(db, loads, 'days');
replacedBesideReaders(db, useService(db), loads, 'a month');

test('days with a chunk in doubt are not replaced before it is loaded or taken back', async () => {
  const { account, file, run, load, counted, sound } = loads;
  const at = (day: string) =>
    ndjson([event({ advertiser_id: account, event_time: `${day}T12:00:00Z`, spend: '1' })]);
  const doubtful = await file('doubtful.ndjson', at('2026-12-02'));
  const id = await load(doubtful);
  await db.store.command({
    query:
      'ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE load_id = {id:String}',
    query_params: { id },
    clickhouse_settings: { mutations_sync: '2' },
  });
  const flags = (day: string) => ['--quiet', '--replaces-days', day, '--of', account];
  const replace = async (day: string) =>
    run(['ingest', 'events', ...flags(day), await file('new.ndjson', at(day))]);
  expect((await replace('2026-12-02')).stderr).toContain(
    `it is unknown whether all of ${doubtful} arrived (load ${id})`,
  );
  expect((await replace('2026-12-03')).code).toBe(0);
  expect(await counted()).toEqual([2, '2']);
  await load(doubtful);
  expect((await replace('2026-12-02')).code).toBe(0);
  expect(await sound()).toEqual([2, '2']);
});

/** A line of `rejects --json`. */
interface RejectedJson {
  readonly file: string;
  readonly line: number;
  readonly event: { readonly quantity: string };
}

/** What a replacement does with rejected rows, in this order. */
const rejectedSteps = [
  // The old rows are dismissed.
  /INSERT INTO rejected_rows .*dismissed_at, version\)/,
  // Dismissed rows of a file that comes back are deleted.
  /ALTER TABLE rejected_rows DELETE .*'' *$/,
  // Corrections that were taken back are copied.
  /INSERT INTO rejected_rows .*now64\(6\)/s,
  // What was rejected of the new chunks before is deleted.
  /ALTER TABLE rejected_rows DELETE .*load_id !=/,
  // The new rows are stored.
  /INSERT INTO rejected_rows .*toDateTime64\(0/s,
];

test('a replacement that is killed after each thing that it does with rejected rows is ended by the same command, with all of them', async () => {
  const { file, run, events, load, last, sound } = loads;
  const at = { event_time: '2026-03-01T12:00:00Z' };
  const path = (name: string, count: number) =>
    file(`${name}.ndjson`, withRejects(events(count, { ...at, campaign_id: name })));
  const [old, stays, leaves] = await Promise.all([path('old', 20), path('stays', 15), path('leaves', 10)]);
  const first = await load(old);
  const { loadId: id = '' } = await replaceBy(db.store, { load: first }, stays, leaves);
  const open = async (loadId: string): Promise<RejectedJson[]> =>
    (await run(['rejects', loadId, '--json'])).stdout
      .split('\n')
      .flatMap((line) => (line ? JSON.parse(line) : []));
  const row = (await open(id)).find((each) => each.file === stays);
  const corrected = { ...row, event: { ...row?.event, quantity: '3' } };
  await run(['replay', id, await file('corrected.ndjson', JSON.stringify(corrected))]);
  await run(['unload', await last('replay')]);

  for (const step of rejectedSteps) {
    const killed = replaceBy(failingAt(db.store, step, 'after'), { load: id }, old, stays);
    await expect(killed, `${step}`).rejects.toThrow('killed');
  }
  const { results, loadId = '' } = await replaceBy(db.store, { load: id }, old, stays);
  const counts = results.map(({ rejectedRows, openRejects }) => [rejectedRows, openRejects]);
  expect(counts).toEqual([
    [4, 4],
    [3, 3],
  ]);
  expect((await open(loadId)).map((each) => [each.file, each.line, each.event.quantity])).toEqual([
    ...[1, 6, 11, 16].map((line) => [old, line, '0']),
    ...[1, 6, 11].map((line) => [stays, line, line === 1 ? '3' : '0']),
  ]);
  expect((await open(id)).filter((each) => each.file === leaves)).toEqual([]);
  expect(await sound()).toEqual([28, '2.8']);
  expect(await run(['verify'])).toMatchObject({ code: 0 });
});
