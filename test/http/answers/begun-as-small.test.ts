import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { reportFormats } from '../../../src/report/formats.ts';
import { insertLarge } from '../../support/accounts.ts';
import { event, load } from '../../support/events.ts';
import { signal } from '../../support/held.ts';
import { useService } from '../../support/service.ts';
import { type Passing, reachedBy, useStatementsBetween } from '../../support/statements-between.ts';
import { useStore } from '../../support/store.ts';
import { isReport } from '../report-statements.ts';

const crowded = ['crowded', 'crammed', 'packed', 'swarming', 'teeming'];
const db = useStore();
/** Statements that ask for a range of days, in the order in which they were sent. */
let sent: Passing[] = [];
let hold: Parameters<typeof useStatementsBetween>[1] = () => {};
/** The same for all other statements. */
let holdOthers = hold;
const between = useStatementsBetween(
  () => db.address.url,
  (passing) => {
    if (!passing.settings.has('param_first')) return holdOthers(passing);
    sent.push(passing);
    return hold(passing);
  },
);
const service = useService(reachedBy(between, db));

beforeAll(async () => {
  await load(db.store, [
    event({ advertiser_id: 'little', spend: '1' }),
    event({ advertiser_id: 'sluggish', spend: '2' }),
  ]);
  await insertLarge(db.store, ['large', 'unlucky', ...crowded], 20_000);
});
beforeEach(() => {
  sent = [];
  hold = () => {};
  holdOthers = () => {};
});

const finest = '/v1/campaigns/breakdowns/device_creative_date';
const settingsOf = (name: string) => sent.filter(isReport).map(({ settings }) => settings.get(name));
const priorities = () => settingsOf('priority');

test('a first answer takes two statements at once: neither waits for the other, and none asks how large it is', async () => {
  const [bothSent, both] = signal();
  hold = () => {
    if (sent.length === 2) bothSent();
    return both;
  };
  const first = await service.report('/v1/campaigns', 'little', '2026-03-01', '2026-03-31');
  expect(first).toMatchObject({ rows: [{ spent: 1 }], unconfirmed_revenue_dates: ['2026-03-01'] });
  expect(sent.map(isReport).toSorted()).toEqual([false, true]);
  await service.report('/v1/campaigns', 'little', '2026-03-01', '2026-03-30');
  expect(sent).toHaveLength(3);
});

test('what is too long to be kept starts over as large, and the next like it begins as large', async () => {
  const ask = async (end: string, start = '2026-01-01') =>
    (await service.report(finest, 'large', start, end)).rows.length;
  expect(await ask('2026-01-05')).toBe(20_000);
  expect(priorities()).toEqual(['1', '2']);
  expect(await ask('2026-12-31')).toBe(20_000);
  expect(priorities()).toEqual(['1', '2', '2']);
  expect(await ask('2026-03-02', '2026-03-01')).toBe(0);
  expect(priorities()).toEqual(['1', '2', '2', '1']);
  expect(settingsOf('os_threads_nice_value_query')).toEqual([null, '10', '10', null]);
});

test('what takes long starts over as large, and is kept all the same', async () => {
  hold = async (passing) => {
    if (isReport(passing) && passing.settings.get('priority') === '1' && !passing.left.aborted)
      await once(passing.left, 'abort');
  };
  const ask = async (end: string) => service.report('/v1/campaigns', 'sluggish', '2026-03-01', end);
  const first = await ask('2026-03-02');
  expect(first).toMatchObject({ rows: [{ spent: 2 }], unconfirmed_revenue_dates: ['2026-03-01'] });
  expect(priorities()).toEqual(['1', '2']);
  expect((await ask('2026-03-02')).rows).toEqual(first.rows);
  expect(priorities()).toEqual(['1', '2']);
});

test('an answer that breaks off before anything of it was sent is a problem', async () => {
  hold = ({ settings }) => (settings.get('priority') === '2' ? 1_000 : undefined);
  const range = { start_time: '2026-01-02', end_time: '2026-12-31' };
  for (const accept of ['application/json', 'text/csv', 'application/x-ndjson']) {
    const answer = await service.post(finest, 'large', range, { accept });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ code: 'internal_error' });
  }
  hold = () => {};
  expect((await service.report(finest, 'large', '2026-01-02', '2026-12-31')).rows).toHaveLength(16_000);
});

test('when the days of a large report cannot be read, nobody asks for its rows', async () => {
  const range = { start_time: '2026-01-01', end_time: '2026-01-05' };
  for (const accept of ['application/json', 'text/csv']) {
    const ask = () => service.post(finest, 'unlucky', range, { accept, 'accept-encoding': 'identity' });
    hold = () => {};
    holdOthers = () => {};
    expect((await (await ask()).text()).length).toBeGreaterThan(1_000_000);
    await load(db.store, [event({ advertiser_id: 'unlucky', spend: '3' })]);
    sent = [];
    hold = () => 0;
    const answer = await ask();
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ code: 'store_unavailable' });
    expect(sent.some(isReport)).toBe(false);
    // What breaks off while it is looked whether it is still true is a problem, too: nothing of it has been sent.
    hold = (passing) => (isReport(passing) ? 50_000 : undefined);
    holdOthers = () => delay(500);
    const broken = await ask();
    expect(broken.status).toBe(500);
    expect(await broken.json()).toMatchObject({ code: 'internal_error' });
  }
});

test('when the days of a short report cannot be read, its other statements end and none begins', async () => {
  await load(db.store, [event({ advertiser_id: 'hapless', spend: '4' })]);
  const range = { start_time: '2026-03-01', end_time: '2026-03-31', totals: true };
  for (const accept of ['text/csv', reportFormats.xlsx.mediaType]) {
    sent = [];
    // The summary, behind which the rows would be asked for.
    hold = (passing) => (isReport(passing) ? once(passing.left, 'abort') : 0);
    const answer = await service.post('/v1/campaigns', 'hapless', range, { accept });
    expect(await answer.json()).toMatchObject({ status: 500, code: 'store_unavailable' });
    await expect.poll(() => sent.filter(isReport).map(({ left }) => left.aborted)).toEqual([true]);
  }
});

test('nobody waits until another has read an equal report, if that is sent as it comes', async () => {
  const range = { start_time: '2026-01-01', end_time: '2026-12-31' };
  /** Whether the account turned out to have long answers before its first one was given up as a small one, which takes a second. */
  const isKnownInTime = async (account: string): Promise<boolean> => {
    sent = [];
    const ask = () => service.post(finest, account, range);
    const [release, released] = signal();
    let [isLongKnown, isLate, isHeld] = [false, false, false];
    hold = (passing) => {
      const priority = isReport(passing) && passing.settings.get('priority');
      const isOfRange = passing.settings.get('param_last') === range.end_time;
      if (priority === '1' && isOfRange) return once(passing.left, 'abort');
      if (priority !== '2' || isHeld) return;
      if (!isLongKnown) {
        isLate ||= isOfRange;
        return;
      }
      isHeld = true;
      return released;
    };
    const first = ask();
    await expect.poll(() => sent.some(isReport)).toBe(true);
    const second = ask();
    const short = await service.report(finest, account, '2026-01-01', '2026-01-05');
    expect(short.rows).toHaveLength(20_000);
    if (isLate) {
      for (const { body } of await Promise.all([first, second])) await body?.cancel();
      return false;
    }
    isLongKnown = true;
    // The first was given up as a small one, and is known to be too long to be collected.
    expect((await second).status).toBe(200);
    expect(isHeld).toBe(true);
    release();
    expect((await first).status).toBe(200);
    return true;
  };
  for (const account of crowded) if (await isKnownInTime(account)) return;
  throw new Error('this machine is too busy: no report of some days was read within a second');
});
