import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import { performance } from 'node:perf_hooks';
import timers from 'node:timers/promises';

/** A program that runs in simulated time. */
export interface Process {
  readonly time: SimulatedTime;
  /** Its own clock is ahead by so many milliseconds. */
  readonly skewMs: number;
  dead: boolean;
  /** Nothing of it goes on before. */
  pausedUntil: number;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  /** Whose step it is; absent: of the store. */
  readonly of: Process | undefined;
}

/** Nothing happens by itself: each step is taken here, in the order of times, and all that follows at once is done before the next. */
export class SimulatedTime {
  /** Milliseconds. */
  now = 0;
  #events: Event[] = [];
  #order = 0;

  in(ms: number, run: () => void, of?: Process): void {
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, run, of };
    // Few are waiting at a time, and most come last.
    let place = this.#events.length;
    while (place > 0 && later(this.#events[place - 1] as Event, event)) place--;
    this.#events.splice(place, 0, event);
  }

  /** Goes on until nothing is left to happen. @throws when that takes longer than so many simulated milliseconds */
  async run(limitMs: number): Promise<void> {
    await settled();
    for (let next = this.#events.shift(); next; next = this.#events.shift()) {
      if (next.at > limitMs) throw new Error(`after ${Math.round(this.now / 1000)} s something still waits`);
      this.now = Math.max(this.now, next.at);
      if (next.of?.dead) continue;
      if (next.of && next.of.pausedUntil > this.now) {
        this.in(next.of.pausedUntil - this.now, next.run, next.of);
        continue;
      }
      next.run();
      await settled();
    }
  }
}

const later = (a: Event, b: Event) => a.at > b.at || (a.at === b.at && a.order > b.order);

const real = { setImmediate, setInterval, clearInterval, delay: timers.setTimeout, dateNow: Date.now };
const realNow = performance.now.bind(performance);
const settled = () => new Promise<void>((resolve) => void real.setImmediate(resolve));

/** 2026-03-01 in milliseconds since 1970. */
export const beginning = Date.UTC(2026, 2, 1);

const running = new AsyncLocalStorage<Process>();

/** Does the work as a program, whose clocks and timers are simulated. */
export const runAs = <T>(process: Process, work: () => T): T => running.run(process, work);

interface Interval {
  stopped: boolean;
}

const intervals = new WeakSet<object>();

function every(process: Process, work: () => void, ms: number): Interval & { unref(): void } {
  const interval = { stopped: false, unref() {} };
  const tick = () => {
    if (interval.stopped) return;
    running.run(process, work);
    process.time.in(ms, tick, process);
  };
  process.time.in(ms, tick, process);
  intervals.add(interval);
  return interval;
}

function delay<T>(process: Process, ms: number, value: T, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new DOMException('The operation was aborted', 'AbortError'));
    if (signal?.aborted) return abort();
    signal?.addEventListener('abort', abort, { once: true });
    const done = () => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    };
    process.time.in(ms, done, process);
  });
}

/** Clocks and timers are simulated for what `runAs` runs, and stay real for all others. @returns what undoes it */
export function simulateTime(): () => void {
  const simulated = {
    setImmediate: (work: () => void) => {
      const process = running.getStore();
      if (process) process.time.in(0, () => running.run(process, work), process);
      else return real.setImmediate(work);
    },
    setInterval: (work: () => void, ms: number) => {
      const process = running.getStore();
      return process ? every(process, work, ms) : real.setInterval(work, ms);
    },
    clearInterval: (interval: unknown) => {
      if (typeof interval === 'object' && interval && intervals.has(interval))
        (interval as Interval).stopped = true;
      else real.clearInterval(interval as NodeJS.Timeout);
    },
  };
  Object.assign(globalThis, simulated);
  Object.assign(timers, {
    setTimeout: (ms = 0, value?: unknown, options?: { signal?: AbortSignal }) => {
      const process = running.getStore();
      return process ? delay(process, ms, value, options?.signal) : real.delay(ms, value, options);
    },
  });
  syncBuiltinESMExports();
  Date.now = () => {
    const process = running.getStore();
    return process ? beginning + process.time.now + process.skewMs : real.dateNow();
  };
  performance.now = () => running.getStore()?.time.now ?? realNow();
  return () => {
    const { delay, dateNow, ...globals } = real;
    Object.assign(globalThis, globals);
    Object.assign(timers, { setTimeout: delay });
    syncBuiltinESMExports();
    Date.now = dateNow;
    performance.now = realNow;
  };
}
