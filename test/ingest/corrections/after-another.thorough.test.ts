import { expect, test } from 'vitest';
import { event, ndjson } from '../../support/events.ts';
import { replaceBy } from '../../support/replace-suite.ts';
import { useStore } from '../../support/store.ts';
import { failingAt, useUnloads, withRejects } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
const { file, run, events, load, last, replayed, counted, sound } = loads;

/** Runs a load that has to go well. */
async function loaded(...args: string[]): Promise<{ readonly id: string; readonly stderr: string }> {
  const { code, stdout, stderr } = await run(['ingest', 'events', '--quiet', '--json', ...args]);
  expect(code, stderr).toBe(0);
  return { id: JSON.parse(stdout).loads[0], stderr };
}
async function takenBack(id: string): Promise<string> {
  const { code, stderr } = await run(['unload', id]);
  expect(code, stderr).toBe(0);
  return stderr;
}
const at = (day: string, spend: string, fields: object = {}) =>
  event({ event_time: `${day}T12:00:00Z`, advertiser_id: loads.account, spend, ...fields });
const daysOf = (days: string) => ['--replaces-days', days, '--of', loads.account];
/** The load is not taken back, and says that another has to be first. */
async function refused(id: string, by: string): Promise<string> {
  const before = await counted();
  const [first, second] = [await run(['unload', id, '--dry-run']), await run(['unload', id])];
  for (const { code, stderr } of [first, second]) {
    expect(code, stderr).toBe(1);
    expect(stderr).toContain(`Take that load back first (adtally unload ${by})`);
  }
  expect(await counted()).toEqual(before);
  return second.stderr;
}

test('a load with days that were replaced is taken back after the replacement, also where that was replaced again', async () => {
  const path = await file('month.ndjson', ndjson([at('2026-10-30', '1'), at('2026-10-31', '1')]));
  const id = await load(path);
  const { id: first } = await loaded(
    ...daysOf('2026-10-31..2026-11-01'),
    await file('first.ndjson', ndjson([at('2026-10-31', '5')])),
  );
  expect(await refused(id, first)).toContain(`--replaces ${id}`);
  const { id: second } = await loaded(
    '--replaces',
    first,
    await file('second.ndjson', ndjson([at('2026-10-31', '7')])),
  );
  await refused(id, second);
  expect(await sound()).toEqual([2, '8']);

  // What is taken back does not stand in the way.
  await takenBack(second);
  await takenBack(id);
  await load(path);
  expect(await sound()).toEqual([2, '2']);
});

test('a load with replaced days can be replaced, and what came after a replacement of its days can be taken back', async () => {
  const id = await load(await file('a.ndjson', ndjson([at('2026-10-30', '1'), at('2026-10-31', '1')])));
  const days = daysOf('2026-10-31..2026-10-31');
  await loaded(...days, await file('b.ndjson', ndjson([at('2026-10-31', '5')])));
  const { id: instead } = await loaded(
    '--replaces',
    id,
    await file('c.ndjson', ndjson([at('2026-10-30', '2')])),
  );
  expect(await sound()).toEqual([2, '7']);
  const later = await load(await file('d.ndjson', ndjson([at('2026-10-31', '3')])));
  await takenBack(
    (await loaded('--replaces', later, await file('e.ndjson', ndjson([at('2026-10-31', '4')])))).id,
  );
  expect(await sound()).toEqual([2, '7']);
  // With it the file of the first would count as new, and its day is replaced.
  expect(await run(['unload', instead])).toMatchObject({ code: 1 });
});

test('a replay whose event was replaced with its day is taken back after the replacement', async () => {
  const path = await file(
    'a.ndjson',
    ndjson([at('2026-10-30', '1'), at('2026-10-31', '1', { quantity: 0 })]),
  );
  const id = await load(path);
  const replay = await replayed(id);
  const { id: by } = await loaded(
    ...daysOf('2026-10-31..2026-10-31'),
    await file('b.ndjson', ndjson([at('2026-10-31', '5')])),
  );
  expect(await refused(replay, by)).not.toContain('--replaces');
  expect(await sound()).toEqual([2, '6']);
  await takenBack(by);
  await takenBack(replay);
});

test('the files of what a replacement had replaced are told of while it stands, and can be loaded when it is taken back', async () => {
  const [oldest, old, own] = [
    await file('oldest.ndjson', ndjson(events(20))),
    await file('old.ndjson', ndjson(events(10))),
    await file('new.ndjson', ndjson(events(5))),
  ];
  const first = await load(oldest, 1_000);
  const { id: second } = await loaded('--replaces', first, old);
  const { id: third } = await loaded('--replaces', second, own);
  for (const [path, ...flags] of [[oldest], [old], [oldest, '--dry-run']] as const) {
    const { stderr } = await loaded(path, ...flags);
    expect(stderr).toBe(
      `nothing to do for ${path}: its events were replaced by load ${third}. --replaces ${third} puts the file in the place of all that load ${third} has brought\n`,
    );
  }
  const other = await file('other.ndjson', ndjson(events(1, { campaign_id: 'other' })));
  expect((await loaded(old, other)).stderr).toMatch(
    /^nothing to do for .*old.ndjson: its events were replaced by .*\n1 event loaded/,
  );
  // Not only by the last: that would count beside it.
  expect(
    (await run(['ingest', 'events', '--replaces', first, await file('x.ndjson', ndjson(events(2)))])).stderr,
  ).toContain(`it was replaced before, by load ${third}`);

  const told = await run(['unload', third, '--dry-run']);
  expect(told.stderr).toContain(`can be loaded again, too: load ${second}, load ${first}\n`);
  expect(await takenBack(third)).toContain('5 events deleted');
  expect(await counted()).toEqual([1, '0.1']);
  await load(oldest, 1_000);
  expect(await counted()).toEqual([21, '2.1']);
  await load(old);
  await load(own);
  expect(await sound()).toEqual([36, '3.6']);
});

test('what another load has sent anew of a replaced file stays when the replacement is taken back', async () => {
  const old = await file('old.ndjson', ndjson(events(10)));
  const { id: by } = await loaded(
    '--replaces',
    await load(old),
    await file('new.ndjson', ndjson(events(5, { event_time: '2026-07-01T12:00:00Z' }))),
  );
  await loaded(...daysOf('2026-03-01..2026-04-30'), old);
  expect(await sound()).toEqual([15, '1.5']);
  await takenBack(by);
  expect(await sound()).toEqual([10, '1']);
  expect((await loaded(old)).stderr).toContain('nothing to do: all 10 events');
});

test('a file whose days were all replaced says by which load', async () => {
  const path = await file('day.ndjson', ndjson([at('2026-10-31', '1')]));
  await load(path);
  const { id } = await loaded(
    ...daysOf('2026-10-31..2026-10-31'),
    await file('b.ndjson', ndjson([at('2026-10-31', '5')])),
  );
  expect((await loaded(path)).stderr).toContain(`were replaced by load ${id}. `);
});

test('taking a load back names later loads that have left out events as duplicates', async () => {
  const [one, two] = [at('2026-10-30', '1', { event_id: '1' }), at('2026-10-31', '1', { event_id: '2' })];
  const id = await load(await file('a.ndjson', ndjson([one, two])));
  const path = await file('b.ndjson', ndjson([two]));
  const { id: later } = await loaded('--dedupe', path);
  // Of another month.
  await loaded(
    '--dedupe',
    await file('c.ndjson', ndjson([at('2026-12-01', '1', { event_id: '3' })]).repeat(2)),
  );
  const told = `load ${later} left out 1 event whose event_id was loaded already: if they were of this load, take load ${later} back and load its file again\n`;
  const { stderr } = await run(['unload', id, '--dry-run']);
  expect(stderr).toContain(told);
  expect(stderr.match(/left out/g)).toHaveLength(1);
  expect(await takenBack(id)).toContain(told);
  await takenBack(later);
  await loaded('--dedupe', path);
  expect(await sound()).toEqual([2, '2']);
});

test('a replacement that was interrupted is completed before it is taken back; then its old file comes with its rejected rows', async () => {
  const path = await file('old.ndjson', withRejects(events(10)));
  const target = { load: await load(path) };
  const whole = await file('whole.ndjson', ndjson(events(10)));
  const half = replaceBy(failingAt(db.store, /INSERT INTO chunk_days/, 'after'), target, whole);
  await expect(half).rejects.toThrow('killed');
  const id = await last('replacement');
  const { code, stderr } = await run(['unload', id]);
  expect(code, stderr).toBe(1);
  expect(stderr).toContain('Run its command again, which completes it');
  const { loadId = '' } = await replaceBy(db.store, target, whole);
  expect(await sound()).toEqual([10, '1']);

  await takenBack(loadId);
  const again = await run(['ingest', 'events', '--quiet', '--json', path]);
  expect(again.code, again.stderr).toBe(4);
  const [old] = JSON.parse(again.stdout).loads;
  expect((await run(['rejects', old, '--json'])).stdout.trimEnd().split('\n')).toHaveLength(2);
  expect(await sound()).toEqual([8, '0.8']);
});
