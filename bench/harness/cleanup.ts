type Close = () => Promise<unknown>;

const open = new Set<Close>();

/** Remembers how to close something that would outlive this process. Returns a close that forgets it. */
export function opened(close: Close): () => Promise<void> {
  open.add(close);
  return async () => {
    if (open.delete(close)) await close();
  };
}

/** Closes what is still open, the latest first. */
export async function closeAll(): Promise<void> {
  for (const close of [...open].toReversed()) {
    open.delete(close);
    await close();
  }
}
