import type { MiddlewareHandler } from 'hono';
import type { HttpEnv } from '../request/env.ts';
import { Problem } from '../request/problems.ts';

/**
 * Refuses a message that another program on the way may read differently: with no Host or several (RFC 9112 §3.2), or
 * with a transfer coding besides chunks, which this service does not undo.
 */
export const requirePlainMessage: MiddlewareHandler<HttpEnv> = (c, next) => {
  const { headers, httpVersion, rawHeaders } = c.env.incoming;
  const hosts = rawHeaders.filter((name, n) => n % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1) throw malformed('the message has several Host headers');
  if (hosts === 0 && httpVersion === '1.1') throw malformed('the message has no Host header');
  if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    throw malformed('the only transfer coding is chunked');
  }
  // The adapter accepts some invalid hosts (http://9999999999) and fails on them much later.
  if (!URL.canParse(c.req.url)) throw new Problem('invalid_request', 'the Host header is not a host');
  return next();
};

/**
 * A path is spelled in one way: `/%72eadyz`, `/x/../readyz` and the like are 404, so that what a proxy keeps from
 * `/readyz` is not reached around it.
 */
export const requirePlainPath: MiddlewareHandler<HttpEnv> = (c, next) => {
  const [path] = (c.env.incoming.url ?? '').replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split('?');
  if (path !== c.req.path) throw new Problem('not_found');
  return next();
};

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

function malformed(reason: string): Problem {
  return new Problem('malformed_message', reason, { headers: { Connection: 'close' } });
}
