import type { MiddlewareHandler } from 'hono';

/** Of every answer: it is kept nowhere on the way, and taken for what its Content-Type says. */
export const answerHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

/** Gives every answer these headers; a route may say otherwise. */
export const withAnswerHeaders: MiddlewareHandler = async (c, next) => {
  for (const [name, value] of Object.entries(answerHeaders)) c.header(name, value);
  await next();
};
