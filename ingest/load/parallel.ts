/**
 * Works on up to `max` items at a time, and reads the next one while there are fewer. After the first failure, no more
 * items are started; it is thrown when those in flight are done.
 * @param stopReading aborted when no more items are wanted
 * @param signal no more items are started after it
 */
export async function inParallel<T>(
  items: AsyncGenerator<T>,
  max: number,
  work: (item: T) => Promise<void>,
  stopReading: AbortController,
  signal?: AbortSignal,
): Promise<void> {
  const running = new Set<Promise<void>>();
  // One call for all that end: a race of a thousand tasks at each of them was half of the work.
  let oneHasEnded = () => {};
  let failure: { error: unknown } | undefined;
  const ended = () => signal?.aborted || failure !== undefined;
  let allRead = false;
  try {
    for (let item = await items.next(); !ended(); item = await items.next()) {
      allRead = item.done === true;
      if (item.done) break;
      const task = work(item.value)
        .catch((error: unknown) => {
          failure ??= { error };
          // The next item may take long to be read.
          stopReading.abort();
        })
        .finally(() => {
          running.delete(task);
          oneHasEnded();
        });
      running.add(task);
      if (running.size < max) continue;
      await new Promise<void>((resolve) => {
        oneHasEnded = resolve;
      });
    }
  } catch (error) {
    failure ??= { error };
  } finally {
    await Promise.all(running);
    // With nothing left to read there is nothing to end, and an abort takes 40 µs.
    if (!allRead) stopReading.abort();
    await items.return(undefined);
  }
  if (failure) throw failure.error;
}

/**
 * Lets up to `max` pieces of work be done at a time; the others wait, in order.
 * @returns what does a piece of work; `leave` lets the next one begin before the work is done
 */
export function slots(max: number): <T>(work: (leave: () => void) => Promise<T>) => Promise<T> {
  let free = max;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((go) => waiting.push(go));
    let inside = true;
    const leave = () => {
      if (!inside) return;
      inside = false;
      const next = waiting.shift();
      if (next) next();
      else free++;
    };
    try {
      return await work(leave);
    } finally {
      leave();
    }
  };
}

/** As `slots`; but what still waits after a failure or the signal is not begun, and fails of the same. */
export function atMost(max: number, signal: AbortSignal): ReturnType<typeof slots> {
  const inSlot = slots(max);
  let failure: { readonly error: unknown } | undefined;
  return (work) =>
    inSlot(async (leave) => {
      try {
        if (failure) throw failure.error;
        signal.throwIfAborted();
        return await work(leave);
      } catch (error) {
        failure ??= { error };
        throw error;
      }
    });
}
