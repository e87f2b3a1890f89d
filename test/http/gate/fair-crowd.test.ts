import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AnswerPace, defaultPaceRules as rules } from '../../../src/http/report/gate/pace.ts';
import { ReportGate } from '../../../src/http/report/gate/report-gate.ts';
import { seededRandom, testSeed } from '../../support/random.ts';

// Minutes of a crowd in seconds, whatever else the machine does: time passes in the test's own steps.
beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
    }),
);
afterEach(() => void vi.useRealTimers());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const never = new AbortController().signal;

interface Report {
  readonly account: string;
  readonly isLarge: boolean;
  /** What the caller takes of its answer; 0: nothing for ever. */
  readonly bytesPerSecond: number;
  readonly bytes: number;
}

/** Runs a report to its end. */
async function run(gate: ReportGate, { account, isLarge, bytesPerSecond, bytes }: Report) {
  const startedAt = performance.now();
  const enter = (size: 'small' | 'large') => gate.enter(account, size, never).catch(() => undefined);
  // Nobody knows how large it is: it begins as small, and starts over when it turned out otherwise.
  let slot = await enter('small');
  if (slot && isLarge) {
    await pause(30);
    slot.leave();
    slot = await enter('large');
  }
  const waitMs = performance.now() - startedAt;
  if (!slot) return { outcome: 'refused', waitMs } as const;
  // The statement begins to answer.
  await pause(30);
  return new Promise<{ outcome: 'whole' | 'broken off'; waitMs: number }>((resolve) => {
    const startedAt = performance.now();
    // Buffers take the first of it at once, and from a slow caller more only when a third of them is free.
    const accepted = () => {
      const read = ((performance.now() - startedAt) / 1000) * bytesPerSecond;
      return Math.min(bytes, 4_000_000 + (bytesPerSecond < 1e6 ? Math.floor(read / 1.5e6) * 1.5e6 : read));
    };
    const pace = new AnswerPace(rules);
    const end = (outcome: 'whole' | 'broken off') => {
      slot.leave();
      resolve({ outcome, waitMs });
    };
    slot.sends({
      pace,
      tick: () => {
        pace.tick(accepted(), accepted() < bytes);
        if (accepted() >= bytes) end('whole');
        else if (pace.stillMs > 60_000) end('broken off');
      },
      breakOff: () => void setTimeout(end, 5, 'broken off'),
    });
  });
}

async function crowd(hostileAccounts: number, seed: number) {
  const random = seededRandom(seed);
  const gate = new ReportGate({ maxConcurrent: 8 });
  const ended = { at: 180_000 };
  const waits: number[] = [];
  const outcomes: Record<string, number> = {};
  const goesOn = () => performance.now() < ended.at;
  const callers: Promise<void>[] = [];
  const honest = async (account: string, n: number) => {
    await pause(random() * 10_000);
    while (goesOn()) {
      const isLarge = n % 4 === 0;
      const { outcome, waitMs } = await run(gate, {
        account,
        isLarge,
        bytesPerSecond: 50e6,
        bytes: isLarge ? 20e6 : 1e5,
      });
      waits.push(waitMs);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      await pause(5_000 + random() * 10_000);
    }
  };
  const phone = async (account: string) => {
    await pause(20_000);
    const { outcome } = await run(gate, { account, isLarge: true, bytesPerSecond: 250e3, bytes: 30e6 });
    outcomes[`phone ${outcome}`] = (outcomes[`phone ${outcome}`] ?? 0) + 1;
  };
  const hostile = async (account: string) => {
    while (goesOn()) {
      await run(gate, { account, isLarge: true, bytesPerSecond: 0, bytes: 20e6 });
      await pause(500);
    }
  };
  for (let n = 0; n < 88; n++) callers.push(honest(`honest-${n}`, n));
  for (const account of ['phone-1', 'phone-2']) callers.push(phone(account));
  for (let n = 0; n < hostileAccounts; n++) {
    for (let caller = 0; caller < 4; caller++) callers.push(hostile(`hostile-${n}`));
  }
  let left = callers.length;
  for (const caller of callers) void caller.then(() => left--);
  ended.at += performance.now();
  // The last hostile report may wait twice for 5 s, is broken off when nothing was taken of it for 60 s, and has its pauses.
  while (performance.now() < ended.at + 75_000) await vi.advanceTimersByTimeAsync(1_000);
  expect(left).toBe(0);
  const sorted = waits.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return { outcomes, median: at(0.5), p99: at(0.99), worst: at(1) };
}

test.each([
  [0, testSeed],
  [2, testSeed],
  [10, testSeed],
  // A slow phone was broken off in its first seconds, before reports of accounts that are known to take nothing.
  [10, 43],
  [10, 592_891_319],
])('of 100 accounts %i are hostile: all others get every report (seed %i)', async (hostileAccounts, seed) => {
  const { outcomes, ...waits } = await crowd(hostileAccounts, seed);
  console.info(`${hostileAccounts} hostile accounts: ${JSON.stringify({ outcomes, ...waits })}`);
  expect(Object.keys(outcomes).toSorted()).toEqual(['phone whole', 'whole']);
  expect(waits.p99).toBeLessThan(500);
  expect(waits.worst).toBeLessThan(4_000);
});
