import type { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

export interface Quota {
  readonly requests: number;
  readonly windowSeconds: number;
}

export interface LimiterOptions extends Quota {
  /** What is counted; limiters with other names count separately. */
  readonly name: string;
  /** Shares the counts between processes; absent: this process counts by itself. */
  readonly redis?: Redis;
}

export interface Verdict {
  readonly allowed: boolean;
  /** The limit that applied. */
  readonly requests: number;
  readonly remaining: number;
  /** Until the window ends, at least 1. */
  readonly resetSeconds: number;
}

/** Counts requests by key in a window. While Redis fails, this process counts by itself. */
export class Limiter {
  readonly quota: Quota;
  readonly #limiter: RateLimiterMemory | RateLimiterRedis;
  readonly #memory: RateLimiterMemory;

  constructor({ name, requests, windowSeconds, redis }: LimiterOptions) {
    this.quota = { requests, windowSeconds };
    // Counts without a limit: every key has its own.
    const options = {
      points: Number.MAX_SAFE_INTEGER,
      duration: windowSeconds,
      keyPrefix: `adtally:${name}`,
    };
    this.#memory = new RateLimiterMemory(options);
    this.#limiter = redis
      ? new RateLimiterRedis({
          ...options,
          storeClient: redis,
          rejectIfRedisNotReady: true,
          insuranceLimiter: this.#memory,
        })
      : this.#memory;
  }

  /** Counts one request against the limit of its key. */
  async consume(key: string, requests = this.quota.requests): Promise<Verdict> {
    const counted = await consumed(this.#limiter, key);
    // A Redis that answers nonsense counts as a Redis that is gone.
    const { consumedPoints, msBeforeNext } = isCount(counted) ? counted : await consumed(this.#memory, key);
    return {
      allowed: consumedPoints <= requests,
      requests,
      remaining: Math.max(0, requests - consumedPoints),
      resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
    };
  }

  /** Whether one more request would be allowed; counts nothing. */
  async allows(key: string): Promise<boolean> {
    const result = await this.#limiter.get(key);
    return result === null || result.consumedPoints < this.quota.requests;
  }
}

/** The library throws a count over its limit, which is no error. */
async function consumed(limiter: RateLimiterMemory | RateLimiterRedis, key: string): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(key);
  } catch (refused) {
    if (refused instanceof RateLimiterRes) return refused;
    throw refused;
  }
}

function isCount({ consumedPoints, msBeforeNext }: RateLimiterRes): boolean {
  return (
    consumedPoints > 0 &&
    Number.isFinite(consumedPoints) &&
    msBeforeNext >= 0 &&
    Number.isFinite(msBeforeNext)
  );
}
