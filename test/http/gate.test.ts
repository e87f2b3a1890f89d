import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Problem } from '../../src/http/problems.ts';
import { ReportGate, type Slot } from '../../src/http/report/gate/report-gate.ts';
import { seededRandom } from '../support/random.ts';

const large = 'large';
const small = 'small';
/** Of a caller that waits as long as it takes. */
const patient = () => new AbortController().signal;

describe('the gate', () => {
  test('takes no more than half of the places for one account and leaves some to small reports', async () => {
    const gate = new ReportGate({ maxConcurrent: 8, waitMs: 60_000 });
    const places: Slot[] = [];
    for (let n = 0; n < 3; n++) places.push(await gate.enter('greedy', large, patient()));
    const fourth = gate.enter('greedy', large, patient());
    places.push(await gate.enter('greedy', small, patient()));
    const fifth = gate.enter('greedy', small, patient());
    for (let n = 0; n < 3; n++) places.push(await gate.enter(`other-${n}`, large, patient()));
    const eighth = gate.enter('other-3', large, patient());
    await turn();
    expect([gate.running, gate.waiting]).toEqual([7, 3]);
    places.push(await gate.enter('little', small, patient()));
    const ninth = gate.enter('little', small, patient());
    await turn();
    expect([gate.running, gate.waiting]).toEqual([8, 4]);

    for (const place of places) place.leave();
    for (const place of await Promise.all([fourth, fifth, eighth, ninth])) place.leave();
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  test('lets small reports that wait go first, but never keeps a large one waiting for all of them', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, waitMs: 60_000 });
    const order: string[] = [];
    const places: Slot[] = [];
    const ask = (size: 'small' | 'large', n: number) =>
      gate.enter(`${size}-${n}`, size, patient()).then((place) => {
        order.push(place.size);
        places.push(place);
      });
    const asked = [ask('large', 0), ask('small', 0)];
    await turn();
    for (let n = 1; n <= 3; n++) asked.push(ask('large', n));
    for (let n = 1; n <= 10; n++) asked.push(ask('small', n));
    await turn();
    expect([gate.running, gate.waiting]).toEqual([2, 13]);
    order.length = 0;
    while (places.length > 0) {
      places.shift()?.leave();
      await turn();
    }
    await Promise.all(asked);
    const turns = order.join(' ').replaceAll('small', 's').replaceAll('large', 'L');
    // While a large one runs here no other could: the small one that goes then costs the large ones no turn.
    expect(turns).toBe('s s s s L s s s s s L s L');
  });

  test('has places of their own for small reports, where the queue of large ones is full', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, maxWaitingLarge: 2, maxWaitingSmall: 4, waitMs: 60_000 });
    const running = [await gate.enter('a', large, patient()), await gate.enter('b', small, patient())];
    const waiting = [gate.enter('c', large, patient()), gate.enter('d', large, patient())];
    await turn();
    await expect(gate.enter('e', large, patient())).rejects.toMatchObject({ code: 'too_many_reports' });
    for (const account of ['a', 'b', 'f', 'f']) waiting.push(gate.enter(account, small, patient()));
    await turn();
    expect(gate.waiting).toBe(6);
    await expect(gate.enter('g', small, patient())).rejects.toMatchObject({ code: 'too_many_reports' });
    for (const place of running) place.leave();
    await Promise.all(waiting.map((waited) => waited.then((place) => place.leave())));
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  test('refuses beyond its queue at once, and after the wait, with the time to come back', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, maxWaitingLarge: 1, waitMs: 1_000 });
    const place = await gate.enter('a', large, patient());
    const startedAt = performance.now();
    const waiting = gate.enter('a', large, patient()).catch((refusal: unknown) => refusal);
    await turn();
    const refusals = [await gate.enter('b', large, patient()).catch((refusal: unknown) => refusal)];
    expect(performance.now() - startedAt).toBeLessThan(900);
    refusals.push(await waiting);
    expect(performance.now() - startedAt).toBeGreaterThan(990);
    for (const refusal of refusals) {
      expect(refusal).toBeInstanceOf(Problem);
      expect(refusal).toMatchObject({
        code: 'too_many_reports',
        options: { headers: { 'Retry-After': '1' } },
      });
    }
    place.leave();
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  test('keeps no place in the queue for a caller that went away, also one that went before it queued', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, waitMs: 60_000 });
    const place = await gate.enter('a', large, patient());
    const waiting = new AbortController();
    const left = gate.enter('a', large, waiting.signal);
    await turn();
    expect(gate.waiting).toBe(1);
    waiting.abort();
    await expect(left).rejects.toThrow();

    await expect(gate.enter('a', large, AbortSignal.abort())).rejects.toThrow();
    expect(gate.waiting).toBe(0);
    place.leave();
    expect(gate.running).toBe(0);
  });

  test('does not let one account fill the queue', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, maxWaitingLarge: 4, waitMs: 60_000 });
    const running = await gate.enter('greedy', large, patient());
    const asked = Array.from({ length: 6 }, () =>
      gate.enter('greedy', large, patient()).then(
        (place) => place.leave(),
        () => undefined,
      ),
    );
    await turn();
    expect(gate.waiting).toBe(2);
    const other = gate.enter('modest', large, patient());
    await turn();
    expect(gate.waiting).toBe(3);
    running.leave();
    (await other).leave();
    await Promise.all(asked);
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  test('keeps every promise and gets every place back, whatever the order of events', async () => {
    for (let seed = 1; seed <= 60; seed++) await randomSchedule(seed);
  });
});

/** Enters, leaves (also twice), departures and failures in an order that depends on the seed. */
async function randomSchedule(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const maxConcurrent = 1 + Math.floor(random() * 8);
  const maxWaitingLarge = Math.floor(random() * 6);
  const maxWaitingSmall = Math.floor(random() * 6);
  const gate = new ReportGate({ maxConcurrent, maxWaitingLarge, maxWaitingSmall, waitMs: 60_000 });
  const running: { account: string; place: Slot }[] = [];
  const callers: AbortController[] = [];
  const asked: Promise<void>[] = [];
  const check = () => {
    const where = `seed ${seed}`;
    expect(gate.running, where).toBeLessThanOrEqual(maxConcurrent);
    expect(gate.waiting, where).toBeLessThanOrEqual(maxWaitingLarge + maxWaitingSmall);
    for (const account of ['a', 'b', 'c']) {
      const ofAccount = running.filter((report) => report.account === account).length;
      expect(ofAccount, where).toBeLessThanOrEqual(Math.max(1, Math.ceil(maxConcurrent / 2)));
    }
  };
  for (let step = 0; step < 150; step++) {
    const dice = random();
    if (dice < 0.5) {
      const caller = new AbortController();
      callers.push(caller);
      const account = 'abc'[Math.floor(random() * 3)] ?? '';
      asked.push(
        gate.enter(account, random() < 0.5 ? small : large, caller.signal).then(
          (place) => void running.push({ account, place }),
          () => undefined,
        ),
      );
    } else if (dice < 0.85) {
      const [report] = running.splice(Math.floor(random() * running.length), 1);
      report?.place.leave();
      if (random() < 0.3) report?.place.leave();
    } else callers[Math.floor(random() * callers.length)]?.abort();
    if (random() < 0.6) await turn();
    check();
  }
  while (gate.running + gate.waiting > 0) {
    await turn();
    for (const { place } of running.splice(0)) place.leave();
  }
  await Promise.all(asked);
  expect([gate.running, gate.waiting, running.length], `seed ${seed}`).toEqual([0, 0, 0]);
  (await gate.enter('a', large, patient())).leave();
}
