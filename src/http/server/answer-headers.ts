import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';

/** Headers of every answer: no cache on the way keeps it, and no browser guesses another content type. */
export const answerHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

/** What a caller may call a request; others get an id from the service. */
const callersId = /^[\w=-]{1,255}$/;

/**
 * Gives every answer these headers, and the id of its request; a route may say otherwise. They are set on the response of
 * Node.js: those of Hono are checked, sorted and copied once more before they get there.
 */
export const withAnswerHeaders: MiddlewareHandler<{
  Bindings: HttpBindings;
  Variables: { requestId: string };
}> = (c, next) => {
  const { incoming, outgoing } = c.env;
  const given = incoming.headers['x-request-id'];
  const id = typeof given === 'string' && callersId.test(given) ? given : randomUUID();
  c.set('requestId', id);
  for (const [name, value] of Object.entries(answerHeaders)) outgoing.setHeader(name, value);
  outgoing.setHeader('X-Request-Id', id);
  return next();
};
