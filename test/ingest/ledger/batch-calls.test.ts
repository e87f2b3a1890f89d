import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Store } from '../../../clickhouse/client.ts';
import { type Gathering, together } from '../../../ingest/ledger/batch-calls.ts';

/** Calls that are answered with twice their number, and what each statement was asked. */
function doubled(gathering?: Gathering<number>) {
  const asked: number[][] = [];
  const store = {} as Store;
  const double = together<number, number>(async (_, items) => {
    asked.push([...items]);
    await turn();
    if (items.includes(13)) throw new Error('13 is refused');
    return items.filter((n) => n !== 7).map((n) => 2 * n);
  }, gathering);
  const ask = (...numbers: number[]) => Promise.all(numbers.map((n) => double(store, n)));
  return { asked, double, ask };
}

test('calls at once share a statement, and each has its own answer', async () => {
  const { asked, ask } = doubled();
  expect(await ask(1, 2, 3)).toEqual([2, 4, 6]);
  expect(asked).toEqual([[1, 2, 3]]);
});

test('a call never goes with a statement that has begun before', async () => {
  const { asked, ask } = doubled();
  const first = ask(1);
  while (asked.length === 0) await turn();
  expect(await ask(2, 3)).toEqual([4, 6]);
  expect(await first).toEqual([2]);
  expect(asked).toEqual([[1], [2, 3]]);
});

test('more calls than a statement takes go with the next', async () => {
  const { asked, ask } = doubled({ most: 2 });
  expect(await ask(1, 2, 3, 4, 5)).toEqual([2, 4, 6, 8, 10]);
  expect(asked).toEqual([[1, 2], [3, 4], [5]]);
});

test('calls of two stores have statements of their own', async () => {
  const { asked, double } = doubled();
  expect(await Promise.all([double({} as Store, 1), double({} as Store, 2)])).toEqual([2, 4]);
  expect(asked).toEqual([[1], [2]]);
});

test('a failure is that of all calls of its statement, and of no later one', async () => {
  const { double } = doubled();
  const store = {} as Store;
  const calls = await Promise.allSettled([double(store, 1), double(store, 13)]);
  expect(calls.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await double(store, 1)).toBe(2);
});

test('no call takes the answer of another where a statement leaves one out', async () => {
  const { ask } = doubled();
  await expect(ask(7, 8)).rejects.toThrow('a statement left a question open');
});

test.each([
  ['as many as were answered together before', undefined],
  ['as many as are about to come', { awaited: { count: (n: number) => (n > 0 ? 3 : 0), ms: 600_000 } }],
])('calls are waited for: %s', async (_, gathering) => {
  const { asked, ask } = doubled(gathering);
  await ask(1, 2, 3);
  const first = ask(4);
  // Its statement could have begun.
  for (let n = 0; n < 3; n++) await turn();
  await Promise.all([first, ask(5, 6)]);
  expect(asked).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
});
