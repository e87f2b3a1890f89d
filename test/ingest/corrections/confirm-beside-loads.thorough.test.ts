import { expect, test } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { confirmDays } from '../../../ingest/lists/confirmations.ts';
import { useChunksInDoubt } from '../../support/chunks-in-doubt.ts';
import { type EventLine, event, load, loadRows } from '../../support/events.ts';
import { heldAt } from '../../support/held.ts';
import { useStore } from '../../support/store.ts';
import { unconfirmedDays } from '../../support/unconfirmed-days.ts';

const db = useStore();
const { mutate } = useChunksInDoubt(db);
const day = '2026-03-01';
let made = 0;

/** An account of its own for each test, and money of it. */
function money(): { account: string; lines: EventLine[] } {
  const account = `account-${++made}`;
  return { account, lines: [event({ advertiser_id: account, spend: '7' })] };
}

const confirm = (store: Store, account: string) => confirmDays(store, account, day, day);

test.each([
  ['from the command line', (account: string) => confirm(db.store, account)],
  ['from a list', (account: string) => loadRows(db.store, 'confirmations', [[account, day]])],
])('money of a chunk in flight is not covered by a confirmation %s', async (_, confirmNow) => {
  const { account, lines } = money();
  const held = heldAt(db.store, /INSERT INTO incoming /);
  const loading = load(held.store, lines);
  await held.reached;
  await confirmNow(account);
  held.release();
  await loading;
  expect(await unconfirmedDays(db.store, account)).toBe(1);
  expect(await confirm(db.store, account)).toEqual({ days: 1, changed: 1 });
});

test('a confirmation says which load was running, and covers what had been loaded before it', async () => {
  const { account, lines } = money();
  await load(db.store, lines);
  const held = heldAt(db.store, /INSERT INTO incoming /);
  const loading = load(held.store, money().lines);
  await held.reached;
  expect(await confirm(db.store, account)).toEqual({
    days: 1,
    changed: 1,
    running: expect.stringMatching(/^2026/),
  });
  held.release();
  await loading;
});

test('a confirmation does not count the days of another one beside the same load', async () => {
  const [one, other] = [money(), money()];
  await load(db.store, [...one.lines, ...other.lines]);
  const sending = heldAt(db.store, /INSERT INTO incoming /);
  const loading = load(sending.store, money().lines);
  await sending.reached;
  const held = heldAt(db.store, /INSERT INTO confirmations /);
  const confirming = confirm(held.store, one.account);
  await held.reached;
  expect(await confirm(db.store, other.account)).toMatchObject({ days: 1, changed: 1 });
  held.release();
  expect(await confirming).toMatchObject({ days: 1, changed: 1 });
  sending.release();
  await loading;
});

test('days that a load makes unconfirmed meanwhile are not taken off those that a confirmation made confirmed', async () => {
  const { account, lines } = money();
  await load(db.store, lines);
  const held = heldAt(db.store, /INSERT INTO confirmations /);
  const confirming = confirmDays(held.store, account, day, '2026-03-31');
  await held.reached;
  const later = { advertiser_id: account, event_time: '2026-03-02T00:00:00Z', spend: '7' };
  await load(db.store, [event(later)]);
  held.release();
  expect(await confirming).toEqual({ days: 31, changed: 1 });
  expect(await confirmDays(db.store, account, day, '2026-03-31')).toEqual({ days: 31, changed: 1 });
});

test('a confirmation waits for a chunk that is being claimed', async () => {
  const { account, lines } = money();
  // The claim is visible, and its time is about to be noted.
  const held = heldAt(db.store, /INSERT INTO load_chunks [^)]*sent_at/);
  const loading = load(held.store, lines);
  await held.reached;
  const confirming = confirm(db.store, account);
  const early = await Promise.race([
    confirming.then(() => 'confirmed'),
    new Promise((resolve) => setTimeout(resolve, 1_000, 'waits')),
  ]);
  expect(early).toBe('waits');
  held.release();
  await Promise.all([loading, confirming]);
  await confirm(db.store, account);
  expect(await unconfirmedDays(db.store, account)).toBe(0);
});

test('what a killed load had not sent is not covered by a confirmation made before it is repeated', async () => {
  const { account, lines } = money();
  await load(db.store, lines);
  await mutate('ALTER TABLE load_chunks UPDATE loaded_at = toDateTime64(0, 6), rows = 0 WHERE true');
  await mutate("ALTER TABLE loads UPDATE state = 'failed' WHERE true");
  await confirm(db.store, account);
  expect(await load(db.store, lines)).toMatchObject({ rows: 1, repeatedRows: 0 });
  expect(await unconfirmedDays(db.store, account)).toBe(1);
  expect((await verifyRollups(db.store, catalog)).differences).toEqual([]);
});
