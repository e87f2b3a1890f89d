import type { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';

export interface Quota {
  readonly requests: number;
  readonly windowSeconds: number;
}

export interface LimiterOptions extends Quota {
  /** What is counted; limiters of other names count apart. */
  readonly name: string;
  /** Shared by every process that uses it; absent: this process alone. */
  readonly redis?: Redis;
}

export interface Verdict {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the window ends, at least 1. */
  readonly resetSeconds: number;
}

/** Counts requests by key in a window. While Redis fails, this process counts alone. */
export class Limiter {
  readonly quota: Quota;
  readonly #limiter: RateLimiterMemory | RateLimiterRedis;

  constructor({ name, requests, windowSeconds, redis }: LimiterOptions) {
    this.quota = { requests, windowSeconds };
    const options = { points: requests, duration: windowSeconds, keyPrefix: `adtally:${name}` };
    const memory = new RateLimiterMemory(options);
    this.#limiter = redis
      ? new RateLimiterRedis({
          ...options,
          storeClient: redis,
          rejectIfRedisNotReady: true,
          insuranceLimiter: memory,
        })
      : memory;
  }

  /** Counts one request. */
  async consume(key: string): Promise<Verdict> {
    try {
      return this.#verdict(true, await this.#limiter.consume(key));
    } catch (rejection) {
      // The limiter rejects with a result when over the limit and with an Error when it fails itself.
      if (rejection instanceof RateLimiterRes) return this.#verdict(false, rejection);
      throw rejection;
    }
  }

  /** Whether one more request would be allowed; counts nothing. */
  async allows(key: string): Promise<boolean> {
    const result = await this.#limiter.get(key);
    return result === null || result.consumedPoints < this.quota.requests;
  }

  #verdict(allowed: boolean, result: RateLimiterRes): Verdict {
    return {
      allowed,
      remaining: Math.max(0, result.remainingPoints),
      resetSeconds: Math.max(1, Math.ceil(result.msBeforeNext / 1000)),
    };
  }
}
