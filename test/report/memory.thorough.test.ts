import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { openMemory } from '../../src/report/kept/memory.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const used = () => {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

test.each([
  ['small answers', 300, []],
  ['large answers', 200_000, []],
  ['accounts with many unconfirmed days', 0, Array.from({ length: 3_650 }, (_, n) => n)],
])('a million different requests take no more memory than they may: %s', async (_, bytes, days) => {
  const maxBytes = 16 << 20;
  const before = used();
  const memory = openMemory(maxBytes);
  const entries = bytes > 1_000 || days.length > 0 ? 5_000 : 1_000_000;
  for (let n = 0; n < entries; n++) {
    const key = `campaigns_date true json 2026-01-01 2026-12-31 undefined account-${n}`;
    const state = `12.${n} 12.${n} 1.${n}`;
    if (days.length > 0) memory.set(key, { state, days: days.map((day) => `2026-${day + n}`) });
    else {
      const answer = {
        body: Buffer.from(new ArrayBuffer(bytes)),
        unconfirmedDates: [`2026-${n}`],
        summary: {},
        query: `query-${n}`,
        rows: { known: n },
      };
      memory.set(key, { state, answer });
    }
  }
  expect(memory.size).toBeGreaterThan(40);
  expect(memory.calculatedSize).toBeLessThanOrEqual(maxBytes);
  // Buffers that nobody holds are freed a moment after they are collected.
  await expect.poll(() => used() - before, { timeout: 10_000 }).toBeLessThan(1.5 * maxBytes);
  expect(memory.size).toBeLessThan(entries);
});
