/**
 * Works on up to `max` items at a time while the next one is being read. After the first failure, no more items are
 * started; it is thrown when those in flight are done.
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
    let next = items.next();
    for (let item = await next; !item.done && !ended(); item = await next) {
      const task = work(item.value)
        .catch((error: unknown) => {
          failure ??= { error };
          // The next item may take long to be read.
          stopReading.abort();
        })
        .finally(() => running.delete(task));
      running.add(task);
      next = items.next();
      // A failure is handled where it is awaited.
      next.catch(() => undefined);
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
