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
  let failure: { error: unknown } | undefined;
  const ended = () => signal?.aborted || failure !== undefined;
  try {
    for (let item = await items.next(); !item.done && !ended(); item = await items.next()) {
      const task = work(item.value)
        .catch((error: unknown) => {
          failure ??= { error };
          // The next item may take long to be read.
          stopReading.abort();
        })
        .finally(() => running.delete(task));
      running.add(task);
      if (running.size >= max) await Promise.race(running);
    }
  } catch (error) {
    failure ??= { error };
  } finally {
    await Promise.all(running);
    stopReading.abort();
    await items.return(undefined);
  }
  if (failure) throw failure.error;
}

/**
 * Lets up to `max` pieces of work be done at a time; the others wait, in order.
 * @param signal what still waits after it is not begun, and fails with its reason
 */
export function atMost(max: number, signal: AbortSignal): <T>(work: () => Promise<T>) => Promise<T> {
  let free = max;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((go) => waiting.push(go));
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
