import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atMost, inParallel } from '../../../ingest/load/parallel.ts';
import { signal } from '../../support/held.ts';

async function* items(count: number, read: (n: number) => void = () => {}): AsyncGenerator<number> {
  for (let n = 0; n < count; n++) {
    read(n);
    yield n;
  }
}

const never = new AbortController().signal;

test('so many work at a time, in order, and one more is read than work', async () => {
  const inSlot = atMost(2, never);
  const began: number[] = [];
  let working = 0;
  let held = 0;
  let most = { working: 0, held: 0 };
  await inParallel(
    items(20, () => held++),
    3,
    async (n) => {
      await inSlot(async () => {
        began.push(n);
        working++;
        most = { working: Math.max(most.working, working), held: Math.max(most.held, held) };
        await delay(1 + (n % 3));
        working--;
      });
      held--;
    },
    new AbortController(),
  );
  expect(began).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(most).toEqual({ working: 2, held: 3 });
});

test('the next begins when one has left, before its work is done', async () => {
  const inSlot = atMost(1, never);
  const steps: string[] = [];
  const [release, released] = signal();
  const first = inSlot(async (leave) => {
    leave();
    leave();
    await released;
  });
  const rest = ['second', 'third'].map((name) =>
    inSlot(async () => {
      steps.push(`${name} begins`);
      await delay(5);
      steps.push(`${name} done`);
    }),
  );
  await Promise.all(rest);
  release();
  await first;
  expect(steps).toEqual(['second begins', 'second done', 'third begins', 'third done']);
});

test.each([1, 2, 3])('nothing begins after a failure, with %i at a time', async (max) => {
  const inSlot = atMost(max, never);
  const began: number[] = [];
  const load = inParallel(
    items(10),
    max + 1,
    (n) =>
      inSlot(async () => {
        began.push(n);
        if (n > 0) await delay(5);
        else throw new Error('the first');
      }),
    new AbortController(),
  );
  await expect(load).rejects.toThrow('the first');
  expect(began).toEqual([0]);
});

test('nothing begins after the signal, and what has begun is finished', async () => {
  const stop = new AbortController();
  const inSlot = atMost(1, stop.signal);
  const done: string[] = [];
  const begun = inSlot(async () => {
    await delay(10);
    done.push('first');
  });
  const waiting = inSlot(async () => done.push('second'));
  stop.abort();
  await expect(waiting).rejects.toThrow('aborted');
  await begun;
  expect(done).toEqual(['first']);
});
