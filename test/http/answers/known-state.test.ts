import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { event, load } from '../../support/events.ts';
import { signal } from '../../support/held.ts';
import { useService } from '../../support/service.ts';
import { reachedBy, useStatementsBetween } from '../../support/statements-between.ts';
import { useStore } from '../../support/store.ts';
import { isReport } from '../report-statements.ts';

const db = useStore();
const trustMs = 500;
let hold: Parameters<typeof useStatementsBetween>[1] = () => {};
const between = useStatementsBetween(
  () => db.address.url,
  (passing) => hold(passing),
);
const service = useService(reachedBy(between, db), { ANSWER_TRUST_MS: String(trustMs) });

/** Impressions, and what Cache-Status says. */
async function ask(end: string, account = 'advertiser'): Promise<readonly unknown[]> {
  const response = await service.post('/v1/campaigns', account, {
    start_time: '2026-03-01',
    end_time: end,
  });
  const { rows } = JSON.parse(await response.text()).result;
  return [rows[0].impressions, response.headers.get('cache-status')?.replace('adtally; ', '')];
}

test('an answer does not wait for the state of the store, and is not kept for one that is newer than its rows', async () => {
  await load(db.store, [event({ quantity: 1 })]);
  expect(await ask('2026-03-30')).toEqual([1, 'fwd=uri-miss']);
  await sleep(trustMs);

  const [tellState, told] = signal();
  const [rowsSent, sent] = signal();
  hold = (passing) => {
    if (isReport(passing)) rowsSent();
    // The state is asked for so often that no log keeps it.
    return passing.settings.get('log_queries') === '0' ? told : undefined;
  };
  const answer = ask('2026-03-31');
  await sent;
  // The rows are read; the state is told after the next load.
  await sleep(200);
  await load(db.store, [event({ quantity: 2 })]);
  tellState();
  hold = () => {};
  expect(await answer).toEqual([1, 'fwd=uri-miss']);
  await sleep(trustMs);
  expect(await ask('2026-03-31')).toEqual([3, 'fwd=stale']);
  expect(await ask('2026-03-31')).toEqual([3, 'hit']);
});

test('who asks later does not share an answer that was begun before the last change', async () => {
  await load(db.store, [event({ advertiser_id: 'later', quantity: 1 })]);
  expect(await ask('2026-03-29')).toMatchObject([expect.any(Number), expect.any(String)]);
  const [goOn, gone] = signal();
  const [begun, sent] = signal();
  // Also the statement of the same report that starts over because it takes long.
  hold = (passing) => {
    if (!isReport(passing)) return undefined;
    begun();
    return gone;
  };
  const early = ask('2026-03-31', 'later');
  await sent;
  await load(db.store, [event({ advertiser_id: 'later', quantity: 2 })]);
  hold = () => {};
  await sleep(trustMs);
  // Read for itself: neither a hit nor collapsed. Stale where the early one, started over just now, was already kept.
  const itself = expect.stringMatching(/^fwd=(uri-miss|stale)$/);
  expect(await ask('2026-03-31', 'later')).toEqual([3, itself]);
  goOn();
  expect(await early).toEqual([3, 'fwd=uri-miss']);
});
