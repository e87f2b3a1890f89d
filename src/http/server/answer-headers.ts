import type { MiddlewareHandler } from 'hono';

/** Headers of every answer: no cache on the way keeps it, and no browser guesses another content type. */
export const answerHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

/** Gives every answer these headers; a route may say otherwise. */
export const withAnswerHeaders: MiddlewareHandler = async (c, next) => {
  for (const [name, value] of Object.entries(answerHeaders)) c.header(name, value);
  await next();
};
