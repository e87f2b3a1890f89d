import { expect, it } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { confirmDays } from '../../../ingest/lists/confirmations.ts';
import { prune } from '../../../src/cli/store/prune.ts';
import { useChunksInDoubt } from '../../support/chunks-in-doubt.ts';
import { type EventLine, event, load, ndjson, withFile } from '../../support/events.ts';
import { heldAt } from '../../support/held.ts';
import { replaceBy } from '../../support/replace-suite.ts';
import { useStore } from '../../support/store.ts';

const test = useStore();
const { events, leaveInDoubt, leaveInDoubtAtRestart, counted, withdrawn, mutate } = useChunksInDoubt(test);

it('a chunk in doubt that was sent before the server was started is looked for, whatever the server remembers', async () => {
  const lines = events();
  await leaveInDoubtAtRestart(lines, '2026-01-01');
  // Lost, though the names of the parts are remembered.
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  await mutate('ALTER TABLE campaigns_device_date DELETE WHERE true');
  expect((await verifyRollups(test.store, catalog)).differences).not.toEqual([]);

  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect(await withdrawn()).not.toEqual([]);
});

it('rollups that lack a chunk sent by a clock that was set back since are rebuilt, and its events, which are whole, are not withdrawn', async () => {
  const lines = events();
  await leaveInDoubtAtRestart(lines, '2035-01-01');
  await mutate("ALTER TABLE campaigns_device_date DELETE WHERE day = '2026-02-05'");
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect(await withdrawn()).toEqual([]);
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
});

it('what a load has left of a chunk that it withdrew is withdrawn by the one that takes over', async () => {
  const lines = events();
  await leaveInDoubtAtRestart(lines);
  // It was killed while it sent the chunk under another name: one month is there twice, another is missing.
  await test.store.command({
    query: 'INSERT INTO withdrawn_chunks (chunk, day) SELECT DISTINCT chunk, day FROM chunk_days',
  });
  await test.store.command({
    query: `INSERT INTO events (* EXCEPT day) SELECT * FROM events WHERE day = '2026-01-05'`,
    clickhouse_settings: { insert_deduplicate: 0 },
  });
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

it('two loads that a crash has left in doubt do not keep each other from being settled', async () => {
  const [lines, others] = [events(), events()];
  await load(test.store, lines, 40_000);
  await leaveInDoubtAtRestart(others);
  await mutate("ALTER TABLE campaigns_device_date DELETE WHERE day = '2026-02-05'");
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await load(test.store, others, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 600, quantity: 1200 });
});

it('a month that was pruned is repaired and keeps what was pruned', async () => {
  const old = Array.from({ length: 50 }, () => event({ event_time: '2026-02-07T00:00:00Z' }));
  await load(test.store, old);
  await prune(test.store, { keep: 1, anyway: true }, new Date('2026-04-15T00:00:00Z'));
  const lines = events();
  await leaveInDoubtAtRestart(lines);
  await mutate("ALTER TABLE campaigns_device_date DELETE WHERE day = '2026-02-05'");
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300 });
  const kept =
    "SELECT toUInt32(sum(r.impressions)) AS kept FROM campaigns_date AS r WHERE day = '2026-02-07'";
  expect(await select(test.store, kept)).toEqual([{ kept: 50 }]);
  expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
});

it('days on which --dedupe leaves out all of a withdrawn chunk are compared, too', async () => {
  const lines = events();
  await leaveInDoubtAtRestart(lines);
  // The same events came in another file while it was in doubt.
  await load(test.store, lines.toReversed(), 40_000);
  expect(await load(test.store, lines, 40_000, { dedupe: true })).toMatchObject({
    rows: 0,
    duplicateRows: 300,
  });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

it('rejected rows that were dismissed count as events where a chunk is mended with flags that admit them', async () => {
  const lines = events().map((line, n) => (n % 100 ? line : { ...line, spend: '0.0000001' }));
  await leaveInDoubt(lines);
  await mutate('ALTER TABLE rejected_rows UPDATE dismissed_at = now64(3) WHERE true');
  expect(await load(test.store, lines, 40_000, { roundMoney: true })).toMatchObject({
    rows: 300,
    rejectedRows: 0,
  });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect((await verifyLedger(test.store)).differences).toEqual([]);
});

it('an event_id of two such chunks counts once, in what ClickHouse has and in what the load tells', async () => {
  const lines = events();
  lines.push(lines[0] as (typeof lines)[0]);
  await leaveInDoubt(lines, { dedupe: true });
  await mutate('ALTER TABLE events DELETE WHERE true');
  expect(await load(test.store, lines, 40_000, { dedupe: true })).toMatchObject({
    rows: 300,
    duplicateRows: 1,
  });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect((await verifyLedger(test.store)).differences).toEqual([]);
});

it('an event_id that another load has stored while such a chunk waited is left out', async () => {
  const lines = events();
  await leaveInDoubt(lines, { dedupe: true });
  await mutate('ALTER TABLE events DELETE WHERE true');
  const first = heldAt(test.store, /"kind":"rebuild"/);
  const waiting = load(first.store, lines, 40_000, { dedupe: true });
  await first.reached;
  await load(test.store, lines.slice(100).toReversed(), 40_000, { dedupe: true });
  first.release();
  expect(await waiting).toMatchObject({ rows: 100, duplicateRows: 200 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

it('what was held back and has expired fails the load before anything is deleted', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  await mutate('TRUNCATE TABLE campaigns_device_date');
  const first = heldAt(test.store, /"kind":"rebuild"/);
  const waiting = load(first.store, lines, 40_000);
  await first.reached;
  await mutate('TRUNCATE TABLE incoming_staging');
  first.release();
  await expect(waiting).rejects.toThrow(/has expired: run the same command again/);
  expect(await withdrawn()).toEqual([]);
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

/** A load of these events that waits before its chunk is mended, and its id. */
async function waitingToMend(lines: readonly EventLine[]) {
  await leaveInDoubt(lines);
  const first = heldAt(test.store, /"kind":"rebuild"/);
  const waiting = load(first.store, lines, 40_000);
  await first.reached;
  const [last] = await select<{ id: string }>(
    test.store,
    "SELECT load_id AS id FROM loads FINAL WHERE position(error, 'to be mended') > 0",
  );
  return { id: last?.id ?? '', waiting, release: first.release };
}

const stateOf = (id: string) =>
  select(test.store, 'SELECT toString(l.state) AS state FROM loads AS l FINAL WHERE load_id = {id:String}', {
    id,
  });

it('a load that is unloaded before it was mended is not stored all the same, and stays unloaded', async () => {
  const lines = events();
  const { id, waiting, release } = await waitingToMend(lines);
  await unload(test.store, id, () => new Date());
  release();
  await expect(waiting).rejects.toThrow(/the load was unloaded or replaced before it could be mended/);
  expect(await counted()).toEqual({ events: 0, quantity: 0 });
  expect(await stateOf(id)).toEqual([{ state: 'unloaded' }]);
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

it('a load that is replaced before it was mended is not stored beside what has replaced it', async () => {
  const { id, waiting, release } = await waitingToMend(events());
  const others = ndjson([event({ quantity: 7 })]);
  await withFile('new.ndjson', others, (path) => replaceBy(test.store, { load: id }, path));
  release();
  await expect(waiting).rejects.toThrow(/the load was unloaded or replaced before it could be mended/);
  expect(await counted()).toEqual({ events: 1, quantity: 7 });
});

it('a load is mended though days of it were to be replaced meanwhile, and days of others were', async () => {
  const lines = events();
  const { waiting, release } = await waitingToMend(lines);
  const replaced = (account: string) => {
    const target = { account, days: { from: '2026-01-05', to: '2026-01-05' } };
    const others = [
      event({ advertiser_id: account, publisher_id: account, event_time: '2026-01-05T00:00:00Z' }),
    ];
    return withFile('new.ndjson', ndjson(others), (path) => replaceBy(test.store, target, path));
  };
  await expect(replaced('advertiser')).rejects.toThrow(
    /\(load \S+\)\. If its command still runs, wait until it has ended; otherwise run its command again/,
  );
  await replaced('another');
  release();
  expect(await waiting).toMatchObject({ rows: 300 });
  expect(await counted()).toEqual({ events: 301, quantity: 601 });
});

/** Nothing of what is stored passes for confirmed. */
async function expectNothingConfirmed(): Promise<void> {
  const query = `SELECT toUInt32(count()) AS early FROM events
    WHERE loaded_at <= (SELECT max(c.confirmed_at) FROM confirmations AS c)`;
  expect(await select(test.store, query)).toEqual([{ early: 0 }]);
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
}
const confirmAll = () =>
  test.store.command({
    query:
      'INSERT INTO confirmations (account_id, day, confirmed_at) SELECT DISTINCT advertiser_id, day, now64(6) FROM events',
  });

it('what is mended does not pass for confirmed by a confirmation that was made while rollups lacked it', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  await mutate('TRUNCATE TABLE campaigns_device_date');
  const first = heldAt(test.store, /INSERT INTO rewrites/);
  const waiting = load(first.store, lines, 40_000);
  await first.reached;
  await confirmAll();
  first.release();
  expect(await waiting).toMatchObject({ rows: 300 });
  await expectNothingConfirmed();
});

it('what is stored anew does not pass for confirmed by a confirmation that was made before all of it was there', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  const store: Store = Object.create(test.store);
  let confirmed = false;
  store.command = async (params) => {
    const result = await test.store.command(params);
    if (confirmed || !/INSERT INTO incoming /.test(params.query)) return result;
    confirmed = true;
    await confirmAll();
    return result;
  };
  expect(await load(store, lines, 40_000)).toMatchObject({ rows: 300 });
  expect(confirmed).toBe(true);
  await expectNothingConfirmed();
});

it.each([
  ['stays where revenue of another account', 'another', '2026-01-05', false],
  ['stays where revenue of another day', 'advertiser', '2026-01-06', false],
  ['is withdrawn where revenue of it', 'publisher', '2026-01-05', true],
])('a chunk that is all there %s was confirmed since', async (_, account, day, withdraws) => {
  const lines = events();
  await leaveInDoubt(lines);
  await confirmDays(test.store, account, day, day);
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect((await withdrawn()).length > 0).toBe(withdraws);
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

it('a loader that takes over such a chunk from one that is about to settle it counts it once', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  const first = heldAt(test.store, /"kind":"rebuild"/);
  const settling = load(first.store, lines, 40_000);
  await first.reached;
  const second = load(test.store, lines, 40_000);
  await expect(second).resolves.toMatchObject({ rows: 300 });
  first.release();
  await settling;
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

/** The store, but sending events to it fails. */
function broken(): Store {
  const store: Store = Object.create(test.store);
  store.exec = (params: Parameters<Store['exec']>[0]) =>
    /INTO incoming/.test(params.query) ? Promise.reject(new Error('cut off')) : test.store.exec(params);
  return store;
}

it('a chunk that such a loader has withdrawn and not sent does not pass for loaded', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  const first = heldAt(test.store, /"kind":"rebuild"/);
  const settling = load(first.store, lines, 40_000);
  await first.reached;
  await expect(load(broken(), lines, 40_000)).rejects.toThrow('cut off');
  first.release();
  await expect(settling).rejects.toThrow(/another load has taken over .* run the same command again/);
  expect(await load(test.store, lines, 40_000)).toMatchObject({ repeatedRows: expect.any(Number) });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
});

/** The store, and what a report counts behind each statement that changes something. */
function watched(): { store: Store; counts: number[] } {
  const store: Store = Object.create(test.store);
  const counts: number[] = [];
  const query = 'SELECT toUInt32(sum(r.impressions)) AS impressions FROM campaigns_date AS r';
  store.command = async (params) => {
    const done = await test.store.command(params);
    const [row] = await select<{ impressions: number }>(test.store, query);
    if (row) counts.push(row.impressions);
    return done;
  };
  return { store, counts };
}

it('a chunk in doubt that the engine has forgotten is counted once, whatever of it had arrived, and never twice', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  // A part of the events and of a rollup was lost.
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  await mutate('TRUNCATE TABLE campaigns_device_date');
  expect((await verifyRollups(test.store, catalog)).differences).not.toEqual([]);

  const { store, counts } = watched();
  expect(await load(store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(Math.max(...counts)).toBe(600);
  expect(counts).toContain(0);
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
});
