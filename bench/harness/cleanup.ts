type Close = () => Promise<unknown>;

const open = new Set<Close>();

/** Registers how to close something that would outlive this process. Returns a function that closes it now. */
export function onCleanup(close: Close): () => Promise<void> {
  open.add(close);
  return async () => {
    if (open.delete(close)) await close();
  };
}

/** Closes everything that is still open, in reverse order. */
export async function cleanUp(): Promise<void> {
  for (const close of [...open].toReversed()) {
    open.delete(close);
    await close();
  }
}
