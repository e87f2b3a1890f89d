import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { claimChunk, type SendableClaim } from '../../ingest/delivery/chunk-claims.ts';
import { Sender } from '../../ingest/delivery/sender.ts';
import { openLedger } from '../../ingest/ledger/ledger.ts';
import { Load } from '../../ingest/ledger/load.ts';
import { commentOf, loadsAtWork } from '../../ingest/ledger/loads-at-work.ts';
import { confirmationTime } from '../../ingest/lists/confirmation-time.ts';
import { event, ndjson } from '../support/events.ts';
import { done, useLoader } from '../support/loader.ts';
import { onlyChunk } from '../support/only-chunk.ts';
import { useStore } from '../support/store.ts';

vi.setConfig({ testTimeout: 180_000 });

// A loader that is killed leaves a server at work on what it has sent.
const db = useStore();
let account: string;
const { counted, file, start, ingest, killAll } = useLoader(db, (own) => {
  ({ account } = own);
});
afterEach(killAll);

/** A load that has claimed the chunk of a file and failed, while a server goes on with its statement for so long. */
async function leftAtWork(
  tenths: number,
): Promise<{ id: string; path: string; claim: SendableClaim; over: Promise<void> }> {
  const path = await file(
    'e.ndjson',
    ndjson(Array.from({ length: 50 }, () => event({ advertiser_id: account, spend: '1' }))),
  );
  const load = await Load.begin(db.store, { kind: 'events', file: path }, new Date());
  const claim = (await claimChunk(openLedger(db.store), load, await onlyChunk(path))) as SendableClaim;
  const over = db.store
    .command({
      query: `SELECT sleepEachRow(0.1) FROM numbers(${tenths}) SETTINGS max_block_size = 1`,
      clickhouse_settings: { log_comment: commentOf(load.id) },
    })
    .then(() => undefined);
  await vi.waitFor(async () => expect(await loadsAtWork(db.store)).toContain(load.id), { interval: 20 });
  await load.fail(new Error('for a test'));
  return { id: load.id, path, claim, over };
}

test('its chunks are waited for', async () => {
  const { path, over } = await leftAtWork(25);
  const loader = start(['ingest', 'events', '--json', path]);
  await over;
  expect(await counted()).toBe(0);
  expect(await done(loader)).toMatchObject({ rows: 50 });
  expect(await counted()).toBe(50);
});

test('is waited for by who takes it back', async () => {
  const { id, over } = await leftAtWork(25);
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  const unload = start(['unload', id]);
  await unload.said(new RegExp(`waiting for load ${id}`));
  expect(await unload.ended).toMatchObject({ code: 0 });
  expect(isOver).toBe(true);
});

test('its bytes are not loaded in another way', async () => {
  const { id, path, over } = await leftAtWork(40);
  const { code, stderr } = await ingest('--timezone', 'Asia/Tokyo', path);
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining(`is being loaded as load ${id}, but read in another way`),
  ]);
  await over;
  expect(await counted()).toBe(0);
});

test('is not covered by a confirmation', async () => {
  const { claim, over } = await leftAtWork(10);
  expect((await confirmationTime(db.store)).time < claim.loadTime).toBe(true);
  await over;
  expect((await confirmationTime(db.store)).time > claim.loadTime).toBe(true);
});

test('every statement that stores events says whose they are', async () => {
  // Of less than 256 KiB the server waits for all before it begins.
  const lines = Array.from({ length: 4_000 }, () => event({ advertiser_id: account }));
  const path = await file('slow.ndjson', ndjson(lines));
  const chunk = await onlyChunk(path);
  const judge = { reportTimezone: 'UTC', timezone: 'UTC', roundMoney: false, requireEventId: false };
  const sender = new Sender({ store: db.store, file: path, judge });
  let hold = true;
  const { stream } = chunk;
  const slowly = () =>
    Readable.from(
      (async function* () {
        yield* stream();
        while (hold) await delay(20);
      })(),
      { objectMode: false },
    );
  const sent = sender.send(
    { ...chunk, stream: slowly },
    '2026-01-01 00:00:00.000000',
    'of-this-test',
    () => {},
  );
  try {
    await vi.waitFor(async () => expect(await loadsAtWork(db.store)).toContain('of-this-test'), 10_000);
  } finally {
    hold = false;
  }
  expect(await sent).toMatchObject({ rows: 4_000 });
  expect(await loadsAtWork(db.store)).not.toContain('of-this-test');
});
