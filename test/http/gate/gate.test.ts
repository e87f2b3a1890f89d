import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ReportGate, type Slot } from '../../../src/http/report/gate/report-gate.ts';
import { Problem } from '../../../src/http/request/problems.ts';
import { seededRandom } from '../../support/random.ts';

const large = 'large';
const small = 'small';
/** Of a caller that waits as long as it takes. */
const patient = () => new AbortController().signal;

afterEach(() => void vi.useRealTimers());

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

  test('lets small reports go before large ones that have just come, and not before those that have long waited', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const gate = new ReportGate({ maxConcurrent: 4, waitMs: 60_000 });
    const order: string[] = [];
    const places: Slot[] = [];
    const ask = (size: 'small' | 'large', n: number) =>
      gate.enter(`${size}-${n}`, size, patient()).then((place) => {
        order.push(place.size);
        places.push(place);
      });
    const asked = Array.from({ length: 6 }, (_, n) => ask('large', n));
    await turn();
    expect([gate.running, gate.waiting]).toEqual([3, 3]);
    asked.push(ask('small', 0));
    await turn();
    expect([gate.running, gate.waiting]).toEqual([4, 3]);
    vi.advanceTimersByTime(31_000);
    asked.push(ask('large', 6));
    for (let n = 1; n <= 6; n++) asked.push(ask('small', n));
    await turn();
    order.length = 0;
    while (places.length > 0) {
      places.shift()?.leave();
      await turn();
    }
    await Promise.all(asked);
    const turns = order.join(' ').replaceAll('small', 's').replaceAll('large', 'L');
    expect(turns).toBe('L L L s s s s s s L');
  });

  test('gives a place to an account without one, however many reports of another account wait', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, waitMs: 60_000 });
    const running = await gate.enter('greedy', large, patient());
    const order: string[] = [];
    const asked = [...Array.from({ length: 500 }, () => 'greedy'), 'modest'].map((account) =>
      gate.enter(account, large, patient()).then((place) => {
        order.push(account);
        place.leave();
      }),
    );
    await turn();
    expect(gate.waiting).toBe(501);
    running.leave();
    await Promise.all(asked);
    expect(order.slice(0, 2)).toContain('modest');
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  test('refuses after the wait, with the time to come back', async () => {
    const gate = new ReportGate({ maxConcurrent: 2, waitMs: 1_000 });
    const place = await gate.enter('a', large, patient());
    const startedAt = performance.now();
    const refusal = await gate.enter('b', large, patient()).catch((error: unknown) => error);
    expect(performance.now() - startedAt).toBeGreaterThan(990);
    expect(refusal).toBeInstanceOf(Problem);
    expect(refusal).toMatchObject({ code: 'too_many_reports', options: { headers: { 'Retry-After': '1' } } });
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

  test('keeps every promise and gets every place back, whatever the order of events', async () => {
    for (let seed = 1; seed <= 60; seed++) await randomSchedule(seed);
  });
});

/** Enters, leaves (also twice), departures and failures in an order that depends on the seed. */
async function randomSchedule(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const maxConcurrent = 1 + Math.floor(random() * 8);
  const gate = new ReportGate({ maxConcurrent, waitMs: 60_000 });
  const running: { account: string; place: Slot }[] = [];
  const callers: AbortController[] = [];
  const asked: Promise<void>[] = [];
  const check = () => {
    const where = `seed ${seed}`;
    expect(gate.running, where).toBeLessThanOrEqual(maxConcurrent);
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
