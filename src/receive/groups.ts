import { setTimeout as delay } from 'node:timers/promises';

/** A group that takes longer, because it has to mend something, does not keep others waiting. */
const longestGroupMs = 5_000;

/** How long a group waits for the senders of the one before: they come again at once, if they send as fast as they can. */
const gatherMs = 200;
/** How long it waits without another of them: a hundred bodies are read one after another. */
const quietMs = 50;

/**
 * Lets work be done in groups, so that what it says to the store is said together: at once where nothing is under way, else
 * when the group before has ended and as many have come as were in it. So all who send as fast as they can make one group,
 * and not two that take turns, at twice the cost.
 * @returns what does a piece of work, and tells it of how many its group is; `leave` lets the next group begin before the work
 * has ended
 */
export function inGroups(): <T>(work: (leave: () => void, members: number) => Promise<T>) => Promise<T> {
  let before: Promise<void> = Promise.resolve();
  let next: Promise<{ readonly members: number; inside: number; readonly end: () => void }> | undefined;
  let waiting = 0;
  let cameAt = 0;
  const begin = async () => {
    await Promise.race([before, delay(longestGroupMs, undefined, { ref: false })]);
    next = undefined;
    const members = waiting;
    waiting = 0;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    before = ended.then(async () => {
      const endedAt = performance.now();
      cameAt = endedAt;
      const isQuiet = (now: number) => now - cameAt > quietMs || now - endedAt > gatherMs;
      while (waiting < members && !isQuiet(performance.now())) await delay(2);
    });
    return { members, inside: members, end };
  };
  return async (work) => {
    waiting++;
    cameAt = performance.now();
    next ??= begin();
    const group = await next;
    let inside = true;
    const leave = () => {
      if (inside) group.inside--;
      inside = false;
      if (group.inside === 0) group.end();
    };
    try {
      return await work(leave, group.members);
    } finally {
      leave();
    }
  };
}
