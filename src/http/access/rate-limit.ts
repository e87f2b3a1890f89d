import type { MiddlewareHandler } from 'hono';
import type { HttpEnv } from '../request/env.ts';
import { Problem, retryIn } from '../request/problems.ts';
import type { AccountCache } from './account-cache.ts';
import type { Limiter, Verdict } from './limiter.ts';

/**
 * Limits the requests of each account in a window, and shows what is left on every answer
 * (draft-ietf-httpapi-ratelimit-headers).
 */
export function rateLimit(
  limiter: Limiter,
  accounts: Pick<AccountCache, 'limitOf'>,
): MiddlewareHandler<HttpEnv> {
  const { windowSeconds } = limiter.quota;
  return async function rateLimitMiddleware(c, next) {
    const account = c.get('account');
    const verdict = await limiter.consume(account, accounts.limitOf(account));
    const { requests } = verdict;
    const { outgoing } = c.env;
    outgoing.setHeader('RateLimit-Policy', `"account";q=${requests};w=${windowSeconds}`);
    outgoing.setHeader('RateLimit', `"account";r=${verdict.remaining};t=${verdict.resetSeconds}`);
    if (!verdict.allowed) throw tooMany(`more than ${requests} requests in ${windowSeconds} s`, verdict);
    return next();
  };
}

/** The problem of a request over a limit, which says when to try again. */
export function tooMany(what: string, { resetSeconds }: Verdict): Problem {
  return new Problem('rate_limited', `${what}; try again in ${resetSeconds} s`, retryIn(resetSeconds));
}
