/**
 * Works on up to `most` items at a time, while the next one is made ready; the first failure ends it once the
 * others in flight are done.
 * @param stopReading aborted when no more items are wanted
 */
export async function inParallel<T>(
  items: AsyncGenerator<T>,
  most: number,
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
          // The next item may be a long time coming.
          stopReading.abort();
        })
        .finally(() => running.delete(task));
      running.add(task);
      next = items.next();
      // Whether it fails is told where it is awaited.
      next.catch(() => undefined);
      if (running.size >= most) await Promise.race(running);
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
