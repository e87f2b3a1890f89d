import type { ClientRequest } from 'node:http';

/**
 * Ends a request when a signal fires. Node's own option `signal` ends it with an error: where all of the answer has been
 * read and its end not yet told, nobody listens for that error, and the process dies of it.
 */
export function endedBy(signal: AbortSignal, request: ClientRequest): void {
  const end = () => void request.destroy();
  signal.addEventListener('abort', end, { once: true });
  request.once('close', () => signal.removeEventListener('abort', end));
  if (signal.aborted) end();
}
