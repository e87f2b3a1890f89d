import { setTimeout as delay } from 'node:timers/promises';
import { Problem } from '../http/problems.ts';

export interface RoomLimits {
  readonly maxBytes: number;
  readonly maxBodies: number;
}

/** The place of one body among those that are held. */
export interface Place {
  /** Takes so many more bytes. @throws {Problem} when there is no room for them */
  grow(bytes: number): void;
  /** Gives everything back. */
  leave(): void;
}

/** Bodies are held in memory, so many bytes and bodies at most; of one sender half of the bytes. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #ofSender = new Map<string, number>();
  bytes = 0;
  bodies = 0;

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /** @throws {Problem} when there are too many bodies */
  enter(sender: string): Place {
    if (this.bodies >= this.#limits.maxBodies) throw tooManyBodies();
    this.bodies++;
    let own = 0;
    const add = (bytes: number) => {
      own += bytes;
      this.bytes += bytes;
      const held = (this.#ofSender.get(sender) ?? 0) + bytes;
      if (held > 0) this.#ofSender.set(sender, held);
      else this.#ofSender.delete(sender);
    };
    let left = false;
    return {
      grow: (bytes) => {
        const { maxBytes } = this.#limits;
        const held = (this.#ofSender.get(sender) ?? 0) + bytes;
        if (this.bytes + bytes > maxBytes || held > maxBytes / 2) throw tooManyBodies();
        add(bytes);
      },
      leave: () => {
        if (left) return;
        left = true;
        this.bodies--;
        add(-own);
      },
    };
  }
}

export function tooManyBodies(): Problem {
  return new Problem('too_many_bodies', undefined, { headers: { 'Retry-After': '1' } });
}

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
