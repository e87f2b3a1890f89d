import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { AnswerPace, type PaceRules } from '../../../src/http/report/gate/pace.ts';
import { ReportGate, type Size, type Slot } from '../../../src/http/report/gate/report-gate.ts';
import type { Answer, BrokenOff } from '../../../src/http/report/gate/sending.ts';

const large = 'large';
const small = 'small';
const patient = () => new AbortController().signal;
const pace: PaceRules = {
  tickMs: 20,
  held: { bytesPerSecond: 1024 * 1024, ms: 100 },
  tooSlow: { bytesPerSecond: 64 * 1024, ms: 400 },
  rememberMs: 60_000,
};
const bytesPerTick = (bytesPerSecond: number) => (bytesPerSecond * pace.tickMs) / 1000;

/** An answer whose caller takes it at a steady rate, until it is broken off. */
class Taken implements Answer {
  readonly pace = new AnswerPace(pace);
  readonly place: Slot;
  bytesPerSecond: number;
  reason: BrokenOff | undefined;
  #bytes = 0;

  constructor(place: Slot, bytesPerSecond: number) {
    this.place = place;
    this.bytesPerSecond = bytesPerSecond;
    place.sends(this);
  }

  tick(): void {
    this.#bytes += bytesPerTick(this.bytesPerSecond);
    this.pace.tick(this.#bytes, true);
  }

  breakOff(reason: BrokenOff): void {
    this.reason ??= reason;
    this.place.leave();
  }
}

/** A report whose answer is taken at this rate. */
async function taken(gate: ReportGate, account: string, bytesPerSecond: number): Promise<Taken> {
  return new Taken(await gate.enter(account, large, patient()), bytesPerSecond);
}

function allLeave(answers: readonly Taken[], gate: ReportGate): void {
  for (const { place } of answers) place.leave();
  expect([gate.running, gate.held, gate.waiting]).toEqual([0, 0, 0]);
}

describe('the pace of an answer', () => {
  const { held, tooSlow } = pace;
  const seconds = (ms: number) => ms / pace.tickMs;

  test('is judged over its whole time, and only while bytes wait for the caller', () => {
    const still = new AnswerPace(pace, 5_000_000);
    still.tick(5_000_000, true);
    for (let tick = 1; tick < seconds(tooSlow.ms); tick++) {
      still.tick(5_000_000, true);
      expect(still.isBelow(held) ?? false).toBe(tick >= seconds(held.ms));
      expect(still.isBelow(tooSlow)).toBeUndefined();
    }
    still.tick(5_000_000, true);
    expect(still.isBelow(tooSlow)).toBe(true);
    expect(still.stillMs).toBe(tooSlow.ms + pace.tickMs);
    // It has taken all there was: what comes now is counted from here.
    still.tick(5_000_001, false);
    expect([still.isBelow(held), still.isBelow(tooSlow), still.stillMs]).toEqual([undefined, undefined, 0]);
  });

  test('is that of a slow line also where the socket accepts a lot at a time, and a false start does not count', () => {
    const stepped = new AnswerPace(pace);
    let total = 4_000_000;
    for (let tick = 0; tick < 100; tick++) {
      // 1.5 times the least, in steps that are almost as rare as can be.
      if (tick % 18 === 17) total += 18 * 1.5 * bytesPerTick(tooSlow.bytesPerSecond);
      stepped.tick(total, true);
      expect(stepped.isBelow(tooSlow) ?? false).toBe(false);
    }
    const stopped = new AnswerPace(pace);
    for (let tick = 0; tick <= seconds(tooSlow.ms); tick++) stopped.tick(4_000_000, true);
    expect(stopped.isBelow(tooSlow)).toBe(true);
  });
});

describe('nobody shuts out the others', () => {
  test('two accounts that take their answers fast leave the last place of either size to a third', async () => {
    const gate = new ReportGate({ maxConcurrent: 8, waitMs: 60_000, pace });
    const places: Slot[] = [];
    const waiting: Promise<Slot>[] = [];
    const ask = (account: string, size: Size) => {
      const entering = gate.enter(account, size, patient());
      waiting.push(entering);
      void entering.then((place) => {
        places.push(place);
        waiting.splice(waiting.indexOf(entering), 1);
      });
    };
    for (let n = 0; n < 10; n++) for (const account of ['a', 'b']) ask(account, n < 5 ? large : small);
    await turn();
    await turn();
    expect([gate.running, places.filter(({ size }) => size === 'large').length]).toEqual([7, 5]);
    expect((await gate.enter('third', large, patient())).size).toBe('large');
    while (waiting.length > 0) {
      places.shift()?.leave();
      await turn();
    }
  });

  test('a place that gets free goes to the account with the fewest reports under way', async () => {
    const gate = new ReportGate({ maxConcurrent: 4, waitMs: 60_000 });
    const order: string[] = [];
    const places = [await gate.enter('a', small, patient()), await gate.enter('a', small, patient())];
    for (const account of ['b', 'c']) places.push(await gate.enter(account, small, patient()));
    const asked = ['b', 'c', 'd', 'b', 'e'].map(async (account) => {
      const place = await gate.enter(account, small, patient());
      order.push(account);
      return place;
    });
    await turn();
    expect([gate.running, gate.waiting]).toEqual([4, 5]);
    for (const place of places) place.leave();
    for (const place of asked) (await place).leave();
    expect(order.slice(0, 2)).toEqual(['d', 'e']);
    expect([gate.running, gate.waiting]).toEqual([0, 0]);
  });

  test('what is held up by its caller goes on without a place, and takes one again when its caller reads', async () => {
    const gate = new ReportGate({ maxConcurrent: 4, waitMs: 60_000, pace });
    const answers: Taken[] = [];
    for (const account of ['a', 'b', 'c']) answers.push(await taken(gate, account, 0));
    expect(gate.running).toBe(3);
    for (const account of ['d', 'e', 'f']) answers.push(await taken(gate, account, 10e6));
    expect([gate.running, gate.held, gate.waiting]).toEqual([3, 3, 0]);
    for (const answer of answers) answer.bytesPerSecond = 10e6;
    await vi.waitUntil(() => gate.running === 6);
    const waits = gate.enter('g', large, patient());
    await turn();
    expect(gate.waiting).toBe(1);
    for (const { place } of answers) place.leave();
    (await waits).leave();
    expect(answers.filter(({ reason }) => reason)).toEqual([]);
    allLeave(answers, gate);
  });

  test('the slow are broken off when somebody waits and not before, those above the least rate never', async () => {
    const gate = new ReportGate({ maxConcurrent: 4, waitMs: 60_000, pace });
    const still = await taken(gate, 'a', 0);
    const slow = await taken(gate, 'b', 100 * 1024);
    await vi.waitUntil(() => still.pace.isBelow(pace.tooSlow));
    expect([still.reason, slow.reason]).toEqual([undefined, undefined]);
    // One account's own limit is as good a reason to wait.
    const waits = gate.enter('a', large, patient());
    await turn();
    expect(still.reason).toMatchObject({ outcome: 'caller_too_slow' });
    expect(still.reason?.message).toMatch(/less than 64 KiB\/s for 0.4 s/);
    expect(slow.reason).toBeUndefined();
    (await waits).leave();
    allLeave([still, slow], gate);
  });

  test('more accounts than there can be reports cannot keep one out, nor push out one that reads', async () => {
    const gate = new ReportGate({ maxConcurrent: 4, waitMs: 60_000, pace });
    const reads = await taken(gate, 'reads', 300 * 1024);
    const hostile: Taken[] = [];
    for (let n = 0; n < 7; n++) hostile.push(await taken(gate, `hostile-${n}`, 0));
    await vi.waitUntil(() => gate.held === 8);
    for (let n = 7; n < 20; n++) hostile.push(await taken(gate, `hostile-${n}`, 0));
    for (let n = 0; n < 10; n++) (await gate.enter(`honest-${n}`, large, patient())).leave();
    expect(reads.reason).toBeUndefined();
    expect(hostile.filter(({ reason }) => reason).length).toBeGreaterThan(13);
    allLeave([reads, ...hostile], gate);
  });
});
