import type { MiddlewareHandler } from 'hono';
import type { HttpEnv } from './env.ts';
import { Problem } from './problems.ts';

/**
 * A path is spelled in one way: `/%72eadyz`, `/x/../readyz` and the like are 404, so that what a proxy keeps from
 * `/readyz` is not reached around it.
 */
export const requirePlainPath: MiddlewareHandler<HttpEnv> = async (c, next) => {
  const [path] = (c.env.incoming.url ?? '').replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split('?');
  if (path !== c.req.path) throw new Problem('not_found', 'there is no such path');
  await next();
};
