import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../clickhouse/client.ts';

interface Call<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
  readonly reject: (error: unknown) => void;
}

/** How long calls are waited for where there were several before, */
const gatherMs = 20;
/** and how long for the next one: loads that go on together call at once. */
const quietMs = 5;
/** ClickHouse takes a parameter of 128 KiB; the name of a chunk has 64 characters. */
const mostChunks = 1_000;

export interface Gathering<Item> {
  /** Items of a statement. */
  readonly most?: number;
  /** How many calls are about to come, as far as one of them knows, and how long they are waited for; absent: see `gatherMs`. */
  readonly awaited?: { readonly count: (item: Item) => number; readonly ms: number };
}

/**
 * Loads that run at once share their small statements: calls that come while one is under way are answered together by
 * the next. As with a statement of its own, all that a call does happens after the call and before its answer.
 * @param work answers each item, in order; a failure is that of all of them, unless they are answered by promises
 */
export function together<Item, Answer>(
  work: (store: Store, items: readonly Item[]) => Promise<readonly (Answer | Promise<Answer>)[]>,
  { most = mostChunks, awaited }: Gathering<Item> = {},
): (store: Store, item: Item) => Promise<Answer> {
  const waiting = new WeakMap<Store, Call<Item, Answer>[]>();
  /** How many calls were answered together lately. */
  const recent = new WeakMap<Store, number>();
  const answersTo = async (store: Store, batch: readonly Call<Item, Answer>[]): Promise<() => void> => {
    try {
      const items = batch.map(({ item }) => item);
      const answers = await work(store, items);
      if (answers.length !== items.length) throw new Error('a statement left a question open');
      await Promise.allSettled(answers);
      return () => {
        for (const [n, { resolve }] of batch.entries()) resolve(answers[n] as Answer | Promise<Answer>);
      };
    } catch (error) {
      return () => {
        for (const { reject } of batch) reject(error);
      };
    }
  };
  const answer = async (store: Store, calls: Call<Item, Answer>[]): Promise<void> => {
    while (calls.length > 0) {
      // About as many as before are likely to call: a statement takes the engine longer than they need.
      const likely = recent.get(store) ?? 1;
      const item = calls[0]?.item as Item;
      const count = () => Math.min(most, awaited?.count(item) ?? likely);
      const ms = awaited?.ms ?? gatherMs;
      const mostQuiet = awaited?.ms ?? quietMs;
      let quiet = 0;
      for (let waited = 0; calls.length < count() && waited < ms && quiet < mostQuiet; waited++) {
        const before = calls.length;
        await delay(1);
        quiet = calls.length > before ? 0 : quiet + 1;
      }
      const batch = calls.splice(0, most);
      recent.set(store, Math.max(batch.length, Math.floor(likely / 2)));
      (await answersTo(store, batch))();
      // Those that go on from here may call at once.
      await new Promise(setImmediate);
    }
    waiting.delete(store);
  };
  return (store, item) =>
    new Promise((resolve, reject) => {
      const calls = waiting.get(store);
      if (calls) {
        calls.push({ item, resolve, reject });
        return;
      }
      const first = [{ item, resolve, reject }];
      waiting.set(store, first);
      setImmediate(() => void answer(store, first));
    });
}
