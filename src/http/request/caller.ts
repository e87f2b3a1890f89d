import type { Context } from 'hono';
import type { HttpEnv } from './env.ts';

/** A signal that fires when the caller leaves, and has fired already when the caller left before this call. */
export function callerOf(c: Context<HttpEnv>): AbortSignal {
  const { incoming, outgoing } = c.env;
  const gone = new AbortController();
  if (incoming.socket.destroyed) gone.abort();
  else {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) gone.abort();
    });
  }
  return gone.signal;
}
