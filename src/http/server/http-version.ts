import type { MiddlewareHandler } from 'hono';
import type { HttpEnv } from '../request/env.ts';
import { Problem } from '../request/problems.ts';

/**
 * Refuses a report over anything but HTTP/1.1 (RFC 9110 §15.5.22). Before HTTP/1.1 an answer of unknown length ends
 * with its connection, so one that breaks off looks whole; a reset instead of an end is lost behind a proxy.
 */
export const requireHttp11: MiddlewareHandler<HttpEnv> = (c, next) => {
  if (c.env.incoming.httpVersion !== '1.1') {
    throw new Problem('http_version_too_old', undefined, {
      headers: { Upgrade: 'HTTP/1.1', Connection: 'Upgrade, close' },
    });
  }
  return next();
};
