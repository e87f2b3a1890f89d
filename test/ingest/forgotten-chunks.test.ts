import { beforeEach, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { withdrawChunk } from '../../ingest/load/withdraw-chunk.ts';
import { type EventLine, event, load } from '../support/events.ts';
import { heldAt } from '../support/held.ts';
import { useStore } from '../support/store.ts';

const test = useStore();
const mutate = (query: string) => test.store.command({ query, clickhouse_settings: { mutations_sync: '2' } });

beforeEach(async () => {
  const tables = [
    'events',
    'loads',
    'load_chunks',
    'chunk_days',
    'withdrawn_chunks',
    ...rollups(catalog).map(({ table }) => table),
  ];
  for (const table of tables) await test.store.command({ query: `TRUNCATE TABLE ${table}` });
});

const events = (): EventLine[] =>
  Array.from({ length: 300 }, (_, n) =>
    event({ event_time: `2026-0${1 + (n % 3)}-05T00:00:00Z`, campaign_id: `campaign-${n % 5}`, quantity: 2 }),
  );

/** Loads events by a loader that died before it could note what was acknowledged; rollups were rebuilt since. */
async function leaveInDoubt(lines: readonly EventLine[]): Promise<void> {
  await load(test.store, lines, 40_000);
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE true');
  await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
  // Since then the rollups' memory of chunks does not say any more what they hold.
  await test.store.command({
    query:
      "INSERT INTO loads (load_id, kind, finished_at, state) SELECT 'later', 'rebuild', now64(3) + 1, 'loaded'",
  });
}

async function counted(): Promise<unknown> {
  expect((await verifyRollups(test.store, catalog)).differences).toEqual([]);
  const query = 'SELECT toUInt32(count()) AS events, toUInt32(sum(quantity)) AS quantity FROM events';
  return (await select(test.store, query))[0];
}

it('a chunk in doubt that the engine has forgotten is counted once, whatever of it had arrived', async () => {
  const lines = events();
  await leaveInDoubt(lines);
  // A part of the events and of a rollup was lost.
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  await test.store.command({ query: 'TRUNCATE TABLE campaigns_device_date' });
  expect((await verifyRollups(test.store, catalog)).differences).not.toEqual([]);

  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
});

/** Loads events by a loader that died before it could note what was acknowledged, as did the server. */
async function leaveInDoubtAtRestart(lines: readonly EventLine[], sentAt = '2026-01-01'): Promise<void> {
  await load(test.store, lines, 40_000);
  await mutate(
    `ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0, sent_at = toDateTime64('${sentAt} 00:00:00', 6, 'UTC') WHERE true`,
  );
  await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
}

const withdrawn = () => select(test.store, 'SELECT DISTINCT chunk FROM withdrawn_chunks');

it.each([
  ['before the server was started', '2026-01-01'],
  ['by a clock that was set back since', '2035-01-01'],
])('a chunk in doubt that was sent %s is looked for, whatever the server remembers', async (_, sentAt) => {
  const lines = events();
  await leaveInDoubtAtRestart(lines, sentAt);
  // Lost, though the names of the parts are remembered.
  await mutate("ALTER TABLE events DELETE WHERE day = '2026-02-05'");
  await mutate('ALTER TABLE campaigns_device_date DELETE WHERE true');
  expect((await verifyRollups(test.store, catalog)).differences).not.toEqual([]);

  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect(await withdrawn()).not.toEqual([]);
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

it('what a killed loader still sends at the server is ended before its chunk is withdrawn', async () => {
  await load(test.store, events());
  const [sent] = await select<{ chunk: string }>(test.store, 'SELECT DISTINCT chunk FROM events');
  const chunk = sent?.chunk ?? '';
  const late = test.store.command({
    query: 'INSERT INTO events (* EXCEPT day) SELECT * EXCEPT day FROM events WHERE sleepEachRow(0.01) = 0',
    clickhouse_settings: { insert_deduplication_token: `${chunk} of-a-dead-load 0`, max_block_size: '10' },
  });
  const ended = expect(late).rejects.toThrow(/killed|cancelled/);
  const running =
    "SELECT count() > 0 AS runs FROM system.processes WHERE query_kind = 'Insert' AND query LIKE '%sleepEachRow%'";
  await expect.poll(() => select(test.store, running)).toEqual([{ runs: 1 }]);
  await withdrawChunk(test.store, chunk);
  await ended;
  const left = 'SELECT chunk FROM events UNION ALL SELECT chunk FROM chunk_days';
  expect(await select(test.store, left)).toEqual([]);
});

it('a deletion that the engine takes for done and never applies is repeated', async () => {
  const lines = events();
  await load(test.store, lines);
  const [sent] = await select<{ chunk: string }>(test.store, 'SELECT DISTINCT chunk FROM events');
  const forgetful: Store = Object.create(test.store);
  const forgotten = new Set<string>();
  forgetful.command = (params) => {
    const isFirst = params.query.startsWith('ALTER') && !forgotten.has(params.query);
    if (isFirst) forgotten.add(params.query);
    return test.store.command(isFirst ? { query: 'SELECT 1 FORMAT Null' } : params);
  };
  await withdrawChunk(forgetful, sent?.chunk ?? '');
  expect(forgotten.size).toBe(2);
  const left = 'SELECT chunk FROM events UNION ALL SELECT chunk FROM chunk_days';
  expect(await select(test.store, left)).toEqual([]);
});

it('rollups that lack such a chunk are rebuilt, and its events, which are whole, are not withdrawn', async () => {
  const lines = events();
  await leaveInDoubtAtRestart(lines);
  await mutate("ALTER TABLE campaigns_device_date DELETE WHERE day = '2026-02-05'");
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 300, repeatedRows: 0 });
  expect(await counted()).toEqual({ events: 300, quantity: 600 });
  expect(await withdrawn()).toEqual([]);
  expect(await load(test.store, lines, 40_000)).toMatchObject({ rows: 0, repeatedRows: 300 });
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

it('rollups of days whose raw events were dropped are left alone', async () => {
  const old = Array.from({ length: 50 }, () => event({ event_time: '2026-02-07T00:00:00Z' }));
  await load(test.store, old);
  await mutate('ALTER TABLE events DELETE WHERE true');
  const lines = events();
  await leaveInDoubtAtRestart(lines);
  await mutate("ALTER TABLE campaigns_device_date DELETE WHERE day = '2026-02-05'");
  await expect(load(test.store, lines, 40_000)).rejects.toThrow(
    /cannot be rebuilt: the raw events of 2026-02-07 have been dropped\. Restore the events of that month/,
  );
  const kept =
    "SELECT toUInt32(sum(r.impressions)) AS kept FROM campaigns_date AS r WHERE day = '2026-02-07'";
  expect(await select(test.store, kept)).toEqual([{ kept: 50 }]);
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

/** The store, but sending events to it fails. */
function broken(): Store {
  const store: Store = Object.create(test.store);
  store.exec = () => Promise.reject(new Error('cut off'));
  return store;
}

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
