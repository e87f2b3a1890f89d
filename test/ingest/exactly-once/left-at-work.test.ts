import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { claimChunk, type SendableClaim } from '../../../ingest/delivery/chunk-claims.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { commentOf } from '../../../ingest/ledger/loads-at-work.ts';
import { confirmationTime } from '../../../ingest/lists/confirmation-time.ts';
import { ndjson } from '../../support/events.ts';
import { signal } from '../../support/held.ts';
import { useLoader } from '../../support/loader.ts';
import { onlyChunk } from '../../support/only-chunk.ts';
import { outputOf } from '../../support/process.ts';
import { onEveryShard, useStore } from '../../support/store.ts';

// A loader that is killed leaves a server at work on what it has sent.
const db = useStore();
const { own, events, file, run, start, ingest, killAll } = useLoader(db);
const releases: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0)) await release();
  await killAll();
});

const lines = () => ndjson(events(50, { spend: '1' }));

/** Keeps a server at work for a load, until the end of the test or until it is released. */
async function atWork(id: string): Promise<() => Promise<unknown>> {
  const queryId = `at-work-${id}`;
  const statement = db.store.command({
    query: 'SELECT sleepEachRow(0.1) FROM numbers(1200) SETTINGS max_block_size = 1',
    query_id: queryId,
    clickhouse_settings: { log_comment: commentOf([id]) },
  });
  const ended = statement.catch(() => undefined);
  const release = async () => {
    // As docs/operations.md says.
    const query = `KILL QUERY WHERE has(splitByChar(' ', Settings['log_comment']), '${id}') SYNC`;
    await db.store.command({ query });
    await ended;
  };
  releases.push(release);
  const running = 'SELECT 1 FROM system.processes WHERE query_id = {queryId:String}';
  await vi.waitFor(async () => expect(await select(db.store, running, { queryId })).toHaveLength(1));
  return release;
}

/** A load that has claimed the chunk of a file and ended, and left a server at work. */
async function leftAtWork() {
  const path = await file('e.ndjson', lines());
  const chunk = await onlyChunk(path);
  const load = await Load.begin(db.store, { kind: 'events', file: path, lock: chunk.head }, new Date());
  const claim = (await claimChunk({ store: db.store }, load, chunk)) as SendableClaim;
  const release = await atWork(load.id);
  await load.fail(new Error('for a test'));
  return { id: load.id, path, claim, release };
}

test.each([
  ['loads the same file', (_: string, __: string, path: string) => ['ingest', 'events', path]],
  [
    'reads it in another way',
    (_: string, __: string, path: string) => ['ingest', 'events', '--timezone', 'Asia/Tokyo', path],
  ],
  ['takes it back', (id: string) => ['unload', id]],
  ['rebuilds', () => ['rebuild']],
  ['goes by event ids', (_: string, path: string) => ['ingest', 'events', '--dedupe', path]],
])('is waited for by who %s', async (_, command) => {
  const { id, path, release } = await leftAtWork();
  const other = await file('other.ndjson', lines());
  const waiting = start(command(id, other, path));
  await waiting.said(new RegExp(`waiting for load ${id}: ClickHouse is still storing events of it`));
  await release();
  expect(await waiting.ended).toMatchObject({ code: 0 });
});

test('is not covered by a confirmation', async () => {
  const { claim, release } = await leftAtWork();
  expect((await confirmationTime(db.store)).time < claim.loadTime).toBe(true);
  await release();
  expect((await confirmationTime(db.store)).time > claim.loadTime).toBe(true);
});

test('a load of another store is not waited for', async () => {
  await atWork(`of-elsewhere-${own.account}`);
  const { code, stderr } = await run(['rebuild']);
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('of-elsewhere')]);
});

test.each([
  ['of a file', () => []],
  ['of several small files', (other: string) => [other]],
  ['with --dedupe', () => ['--dedupe']],
  ['with --max-rejects', () => ['--max-rejects', '5']],
])('every statement that stores events says which load they are of: %s', async (_, more) => {
  const path = await file('e.ndjson', lines());
  const other = await file('other.ndjson', ndjson(events(1, { campaign_id: 'other' })));
  await outputOf(ingest(path, ...more(other)));
  const { id: chunk } = await onlyChunk(path);
  const loads = `SELECT load_id AS id, if(max(c.batch) = '', {chunk:String}, max(c.batch)) AS token
    FROM load_chunks AS c WHERE chunk = {chunk:String} GROUP BY load_id`;
  const [load] = await select<{ id: string; token: string }>(db.store, loads, { chunk });
  await onEveryShard(db, 'SYSTEM FLUSH LOGS query_log');
  const comments = `SELECT DISTINCT Settings['log_comment'] AS comment FROM system.query_log
    WHERE type = 'QueryFinish' AND startsWith(Settings['insert_deduplication_token'], {token:String})`;
  const [found, ...others] = await select<{ comment: string }>(db.store, comments, {
    token: load?.token ?? '',
  });
  expect(others).toEqual([]);
  expect(found?.comment.split(' ')).toEqual(expect.arrayContaining(['load', load?.id]));
});

const begun = (kind: 'events' | 'rebuild', onWait?: (other: string) => void) =>
  Load.begin(db.store, { kind, file: kind }, new Date(), onWait && { onWait });

/** A rebuild that waits for what began before it. */
async function waitingRebuild(): Promise<{ ended: boolean; readonly load: Promise<Load> }> {
  const [onWait, waiting] = signal();
  const load = begun('rebuild', onWait);
  const rebuild = { ended: false, load };
  void load.then(() => {
    rebuild.ended = true;
  });
  await waiting;
  return rebuild;
}

test('is waited for by a rebuild, also where its load goes behind that and is alive', async () => {
  const load = await begun('events');
  const release = await atWork(load.id);
  const rebuild = await waitingRebuild();
  const silence = vi.spyOn(load, 'heartbeatLapsedSince').mockReturnValueOnce(true);
  const behind = load.requeueIfLapsed({}, performance.now());
  silence.mockRestore();
  await delay(2_000);
  expect(rebuild.ended).toBe(false);
  await release();
  await (await rebuild.load).finish();
  expect(await behind).toBe(true);
  await load.finish();
});
