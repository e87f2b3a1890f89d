import type { Context } from 'hono';
import type { HttpEnv } from '../env.ts';

/**
 * A signal that the caller is gone. It watches the connection, because an answer that waits behind another on the same
 * connection, or whose caller left before anybody looked, would never be notified.
 */
export function callerOf(c: Context<HttpEnv>): { signal: AbortSignal; forget: () => void } {
  const { socket } = c.env.incoming;
  const gone = new AbortController();
  const onClose = () => gone.abort();
  // One listener for each request under way on the connection.
  socket.setMaxListeners(0).once('close', onClose);
  if (socket.destroyed) gone.abort();
  return { signal: gone.signal, forget: () => socket.off('close', onClose) };
}
