import { Redis } from 'ioredis';
import type { Logger } from 'pino';

/** The Redis that shares request limits between processes; logs once when it fails and once when it is back. */
export function openRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 500,
    // A Redis that hangs fails as a whole, so that not every request waits for the timeout of its own command.
    socketTimeout: 1_000,
  });
  let failing = false;
  redis.on('error', (err) => {
    if (!failing) log.warn({ err }, 'Redis fails: this process limits requests by itself');
    failing = true;
  });
  redis.on('ready', () => {
    if (failing) log.info('Redis is back: limits are shared again');
    failing = false;
  });
  return redis;
}
