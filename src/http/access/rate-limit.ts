import type { MiddlewareHandler } from 'hono';
import type { HttpEnv } from '../env.ts';
import { Problem } from '../problems.ts';
import type { Limiter, Verdict } from './limiter.ts';

export interface LimitLookup {
  /** Requests in a window, of an account that has a limit of its own. */
  limitOf(account: string): number | undefined;
}

/**
 * Allows each account so many requests in a window, and tells it where it stands on every answer
 * (draft-ietf-httpapi-ratelimit-headers).
 */
export function rateLimit(limiter: Limiter, accounts: LimitLookup): MiddlewareHandler<HttpEnv> {
  const { windowSeconds } = limiter.quota;
  return async function rateLimitMiddleware(c, next) {
    const account = c.get('account');
    const verdict = await limiter.consume(account, accounts.limitOf(account));
    const { requests } = verdict;
    c.header('RateLimit-Policy', `"account";q=${requests};w=${windowSeconds}`);
    c.header('RateLimit', `"account";r=${verdict.remaining};t=${verdict.resetSeconds}`);
    if (!verdict.allowed) throw tooMany(`more than ${requests} requests in ${windowSeconds} s`, verdict);
    await next();
  };
}

/** The problem of a request over a limit, which says when to try again. */
export function tooMany(what: string, { resetSeconds }: Verdict): Problem {
  return new Problem('rate_limited', `${what}; try again in ${resetSeconds} s`, {
    headers: { 'Retry-After': String(resetSeconds) },
  });
}
