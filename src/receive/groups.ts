import { setTimeout as delay } from 'node:timers/promises';

/** Does up to `most` pieces of work at a time, in the order in which they come. */
export function slots(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let free = most;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((go) => waiting.push(go));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}

/** A group that takes longer, because it has to repair something, does not keep others waiting. */
const longestGroupMs = 5_000;

/**
 * Lets work begin in groups, so that what it says to the store is said together: at once where nothing is under way, else
 * when the group before has ended, and at least so long after that began.
 * @returns what does a piece of work; `leave` lets the next group begin before the work has ended
 */
export function inGroups(everyMs: number): <T>(work: (leave: () => void) => Promise<T>) => Promise<T> {
  let begunAt = Number.NEGATIVE_INFINITY;
  let before: Promise<void> = Promise.resolve();
  let next: Promise<{ members: number; readonly end: () => void }> | undefined;
  const begin = async () => {
    await Promise.all([
      delay(Math.max(0, begunAt + everyMs - performance.now())),
      Promise.race([before, delay(longestGroupMs, undefined, { ref: false })]),
    ]);
    begunAt = performance.now();
    next = undefined;
    let end = () => {};
    before = new Promise((resolve) => {
      end = resolve;
    });
    return { members: 0, end };
  };
  return async (work) => {
    next ??= begin();
    const group = await next;
    group.members++;
    let inside = true;
    const leave = () => {
      if (inside) group.members--;
      inside = false;
      if (group.members === 0) group.end();
    };
    try {
      return await work(leave);
    } finally {
      leave();
    }
  };
}
