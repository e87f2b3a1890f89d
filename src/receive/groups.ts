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

/** Those who have their answers come again within so long, if they come at once. */
const gatherMs = 30;

/**
 * Lets work be done in groups, so that what it says to the store is said together: at once where nothing is under way, else
 * when the group before has ended and those of it may have come again. So all who send as fast as they can make one group,
 * and not two that take turns, at twice the cost.
 * @returns what does a piece of work; `leave` lets the next group begin before the work has ended
 */
export function inGroups(): <T>(work: (leave: () => void) => Promise<T>) => Promise<T> {
  let before: Promise<void> = Promise.resolve();
  let next: Promise<{ all: number; inside: number; readonly end: () => void }> | undefined;
  const begin = async () => {
    await Promise.race([before, delay(longestGroupMs, undefined, { ref: false })]);
    next = undefined;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const group = { all: 0, inside: 0, end };
    before = ended.then(() => (group.all > 1 ? delay(gatherMs) : undefined));
    return group;
  };
  return async (work) => {
    next ??= begin();
    const group = await next;
    group.all++;
    group.inside++;
    let inside = true;
    const leave = () => {
      if (inside) group.inside--;
      inside = false;
      if (group.inside === 0) group.end();
    };
    try {
      return await work(leave);
    } finally {
      leave();
    }
  };
}
