import type { MiddlewareHandler } from 'hono';
import type { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Edge } from './edge.ts';
import { Problem } from './problems.ts';

export interface RateLimitOptions {
  readonly requests: number;
  readonly windowSeconds: number;
  /** Shared by every process that uses it; absent: this process alone. */
  readonly redis?: Redis;
}

interface Verdict {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/**
 * Allows each account so many requests in a window, and tells it where it stands on every answer
 * (draft-ietf-httpapi-ratelimit-headers). While Redis fails, this process counts alone.
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler<Edge> {
  const consume = limiter(options);
  const policy = `"account";q=${options.requests};w=${options.windowSeconds}`;
  return async function rateLimitMiddleware(c, next) {
    const { allowed, remaining, resetSeconds } = await consume(c.get('account'));
    c.header('RateLimit-Policy', policy);
    c.header('RateLimit', `"account";r=${remaining};t=${resetSeconds}`);
    if (!allowed) {
      throw new Problem(
        'rate_limited',
        `more than ${options.requests} requests in ${options.windowSeconds} s; try again in ${resetSeconds} s`,
        { headers: { 'Retry-After': String(resetSeconds) } },
      );
    }
    await next();
  };
}

/** The limiter rejects with a result when over the limit and with an Error when it fails itself. */
function limiter({ requests, windowSeconds, redis }: RateLimitOptions): (key: string) => Promise<Verdict> {
  const quota = { points: requests, duration: windowSeconds, keyPrefix: 'adtally:requests' };
  const memory = new RateLimiterMemory(quota);
  const limiter = redis
    ? new RateLimiterRedis({ ...quota, storeClient: redis, insuranceLimiter: memory })
    : memory;
  const verdict = (allowed: boolean, result: RateLimiterRes): Verdict => ({
    allowed,
    remaining: Math.max(0, result.remainingPoints),
    resetSeconds: Math.max(1, Math.ceil(result.msBeforeNext / 1000)),
  });
  return async (key) => {
    try {
      return verdict(true, await limiter.consume(key));
    } catch (rejection) {
      if (rejection instanceof RateLimiterRes) return verdict(false, rejection);
      throw rejection;
    }
  };
}
